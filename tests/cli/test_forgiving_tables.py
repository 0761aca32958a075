"""Tables of usage as people really have them: exports of spreadsheets and dashboards, pasted terminals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from podqos.cli.main import main

DEPLOYMENT = """\
apiVersion: apps/v1
kind: Deployment
metadata: {name: web, namespace: shop}
spec:
  replicas: 1
  selector: {matchLabels: {app: web}}
  template:
    metadata: {labels: {app: web}}
    spec:
      containers:
      - {name: web, image: w, resources: {requests: {cpu: 100m, memory: 256Mi}}}
      - {name: proxy, image: p, resources: {requests: {cpu: 100m, memory: 64Mi}}}
"""
POD = "web-7d8b9c4f5-x2k9p"
LABELS = f'namespace=""shop"", pod=""{POD}""'

# Each says that web uses 512Mi (or 512M, or as the id says) and proxy 64Mi.
TABLES = {
    "further columns": "namespace,pod,container,memory,team,Dashboard URL\nshop,{pod},web,512Mi,red,http://x/?a=1\n"
    "shop,{pod},proxy,64Mi,red,http://x\n",
    "upper case": "NAMESPACE,POD,CONTAINER,MEMORY\nshop,{pod},web,512Mi\nshop,{pod},proxy,64Mi\n",
    "Timestamp": "Timestamp,Namespace,Pod,Container,Memory\n2026-11-01T00:00:00Z,shop,{pod},web,512Mi\n"
    "2026-11-01T00:00:00Z,shop,{pod},proxy,64Mi\n",
    "semicolons and decimal commas": "pod;container;memory;cpu\nshop/{pod};web;0,5Gi;0,25\nshop/{pod};proxy;64Mi;0,1\n",
    "grouping dots": "sep=;\r\npod;container;memory\r\nshop/{pod};web;536.870.912\r\nshop/{pod};proxy;64Mi\r\n",
    "grouping commas": 'pod,container,memory\nshop/{pod},web,"536,870,912"\nshop/{pod},proxy,64Mi\n',
    "grouping spaces": "pod\tcontainer\tmemory\nshop/{pod}\tweb\t536 870 912\nshop/{pod}\tproxy\t64Mi\n",
    "byte order mark": "\ufeffpod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,64Mi\n",
    "quotes": '"pod","container","memory"\n"shop/{pod}","web","512Mi"\n"shop/{pod}","proxy","64Mi"\n',
    "spaces": "pod , container , memory  \nshop/{pod} , web ,512Mi  \nshop/{pod} , proxy ,64Mi\n",
    "1.5 GiB": "pod,container,memory\nshop/{pod},web,0.5 GiB\nshop/{pod},proxy,64 MiB\n",
    "1.5GiB": "pod,container,memory\nshop/{pod},web,0.5GiB\nshop/{pod},proxy,64MiB\n",
    "lower case units": "pod,container,memory\nshop/{pod},web,512mib\nshop/{pod},proxy,64mi\n",
    "percent columns": "pod,container,memory %,memory,CPU%\nshop/{pod},web,25%,512Mi,1%\nshop/{pod},proxy,1%,64Mi,1%\n",
    "empty rows": "pod,container,memory\n\nshop/{pod},web,512Mi\n,,\n\nshop/{pod},proxy,64Mi\n\n",
    "headings twice": "pod,pod,container,memory,memory\nshop/{pod},shop/{pod},web,512Mi,512Mi\n"
    "shop/{pod},shop/{pod},proxy,64Mi,64Mi\n",
    "CRLF": "pod,container,memory\r\nshop/{pod},web,512Mi\r\nshop/{pod},proxy,64Mi\r\n",
    "commas at the end": "pod,container,memory\nshop/{pod},web,512Mi,\nshop/{pod},proxy,64Mi,,\n",
    "a comment above": "# exported by finops\npod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,64Mi\n",
    "units in headings": "Pod Name,Container Name,Memory Usage (MiB),CPU (millicores)\nshop/{pod},web,512,100\n"
    "shop/{pod},proxy,64,10\n",
    "exponents": "pod,container,memory\nshop/{pod},web,5.36870912E+08\nshop/{pod},proxy,6.7108864e7\n",
    "N/A": "pod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,N/A\n",
    "-": "pod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,-\n",
    "<none>": "pod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,<none>\n",
    "<unknown>": "pod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,<unknown>\n",
    "NaN": "pod,container,memory\nshop/{pod},web,512Mi\nshop/{pod},proxy,NaN\n",
    "top --containers": "POD  NAME  CPU(cores)  MEMORY(bytes)\n{pod}  web  12m  512Mi\n{pod}  proxy  1m  64Mi\n",
    "top -A --containers": "NAMESPACE  POD  NAME  CPU(cores)  MEMORY(bytes)\nshop  {pod}  web  12m  512Mi\n"
    "shop  {pod}  proxy  1m  64Mi\n",
    "top, lower case": "pod  name  cpu(cores)  memory(bytes)\n{pod}  web  12m  512Mi\n{pod}  proxy  1m  64Mi\n",
    "top --containers --no-headers": "{pod}  web  12m  512Mi\n{pod}  proxy  1m  64Mi\n",
    "top -A --containers --no-headers": "shop  {pod}  web  12m  512Mi\nshop  {pod}  proxy  1m  64Mi\n",
    "top with its command": "$ kubectl top pods --containers\nPOD  NAME  CPU(cores)  MEMORY(bytes)\n"
    "{pod}  web  12m  512Mi\n{pod}  proxy  1m  64Mi\n",
    "top with a warning": "W1101 00:00:00.000000      12 top_pod.go:140] Using json format to get metrics\n"
    "POD  NAME  CPU(cores)  MEMORY(bytes)\n{pod}  web  12m  512Mi\n{pod}  proxy  1m  64Mi\n",
    "top as CSV": "NAMESPACE,POD,NAME,CPU(cores),MEMORY(bytes)\nshop,{pod},web,12m,512Mi\nshop,{pod},proxy,1m,64Mi\n",
    "Grafana, joined by time": f'"Time","{{{{container=""web"", {LABELS}}}}}","{{{{container=""proxy"", {LABELS}}}}}"\n'
    "2026-11-01 00:00:00,512 MiB,64 MiB\n2026-11-01 00:01:00,512 MiB,\n",
    "Grafana, two queries": '"Time","namespace","pod","container","Value #A","Value #B"\n'
    "2026-11-01 00:00:00,shop,{pod},web,536870912,0.25\n2026-11-01 00:00:00,shop,{pod},proxy,67108864,0.1\n",
    "Prometheus, labels as columns": "__name__,container,instance,namespace,pod,value,timestamp\n"
    "container_memory_working_set_bytes,web,10.0.0.1:10250,shop,{pod},536870912,1762000000\n"
    "container_memory_working_set_bytes,proxy,10.0.0.1:10250,shop,{pod},67108864,1762000000\n",
    "Prometheus, an instant query": '{{"status":"success","data":{{"resultType":"vector","result":['
    '{{"metric":{{"pod":"{pod}","namespace":"shop","container":"web"}},"value":[1762000000,"536870912"]}},'
    '{{"metric":{{"pod":"{pod}","namespace":"shop","container":"proxy"}},"value":[1762000000,"67108864"]}}]}}}}',
}


def rank(capsys, tmp_path: Path, table: str, *words: str, manifests: str = DEPLOYMENT) -> tuple[int, str, str]:
    manifest, usage = tmp_path / "web.yaml", tmp_path / "usage.csv"
    manifest.write_text(manifests)
    usage.write_bytes(table.encode())
    code = main(["rank", "-f", str(manifest), "--usage", str(usage), "--node-memory", "8Gi", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err.replace(f"{tmp_path}/", "")


@pytest.mark.parametrize("text", TABLES.values(), ids=TABLES)
def test_a_table_is_understood_however_it_is_written(capsys, tmp_path, text):
    code, out, _ = rank(capsys, tmp_path, text.format(pod=POD), "-o", "json")
    assert code == 0
    (place,) = json.loads(out)["evictionOrder"]
    assert place["pod"] == f"shop/{POD}"
    assert place["usage"] == (512 + 64) << 20


def test_gb_as_dashboards_format_it_is_what_they_mean(capsys, tmp_path):
    _, out, _ = rank(capsys, tmp_path, f"pod,container,memory\n{POD},web,0.5 GB\n{POD},proxy,64 MB\n", "-o", "json")
    assert json.loads(out)["evictionOrder"][0]["usage"] == 564_000_000
    code, _, said = rank(capsys, tmp_path, f"pod,container,memory\n{POD},web,0.5GB\n", "-o", "json")
    assert code == 2
    assert said.endswith("(did you mean 0.5Gi or 0.5G?)\n")


@pytest.mark.parametrize(
    ("text", "ignored"),
    [
        (TABLES["further columns"], "team, Dashboard URL"),
        (TABLES["percent columns"], "memory %, CPU%"),
        (TABLES["Grafana, two queries"], "Value #B"),
        (TABLES["units in headings"], ""),
        (TABLES["top -A --containers"], ""),
        (TABLES["Prometheus, labels as columns"], ""),
        (TABLES["Grafana, joined by time"], ""),
    ],
)
def test_ignored_columns_are_reported_once(capsys, tmp_path, text, ignored):
    _, _, said = rank(capsys, tmp_path, text.format(pod=POD), "-o", "name")
    reported = [line for line in said.splitlines() if "ignored" in line]
    assert reported == [f"usage.csv: columns ignored: {ignored}"] * bool(ignored)


SINGLE = DEPLOYMENT.partition("      - {name: proxy")[0]


@pytest.mark.parametrize(
    "text",
    [
        "NAME  CPU(cores)  MEMORY(bytes)\n{pod}  12m  512Mi\n",
        "NAMESPACE  NAME  CPU(cores)  MEMORY(bytes)\nshop  {pod}  12m  512Mi\n",
        "{pod}  12m  512Mi\n",
        "shop  {pod}  12m  512Mi\n",
        "my-stage  {pod}  12m  512Mi\nshop  {pod}  12m  512Mi\n",
        "NAMESPACE,NAME,CPU(cores),MEMORY(bytes)\nshop,{pod},12m,512Mi\n",
        "name,memory\n{pod},512Mi\n",
    ],
    ids=["pods", "all namespaces", "no headers", "no headers, -A", "a namespace like a pod", "CSV", "a name"],
)
def test_whole_pods_are_understood_where_they_have_one_container(capsys, tmp_path, text):
    code, out, _ = rank(capsys, tmp_path, text.format(pod=POD), "-o", "json", manifests=SINGLE)
    assert code == 0
    assert json.loads(out)["evictionOrder"][0]["usage"] == 512 << 20


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "usage.csv: it is empty (write a list of rows, or CSV with the columns pod, container, memory, "),
        ("pod,container,memory\n", "usage.csv: there are no rows below the heading (leave it out to assume usage)"),
        ("pod,memory %\nweb,25%\n", "usage.csv:1: no column has usage (the columns are pod, container, memory, "),
        ("pod,contianer,memory\nweb,web,1\n", "usage.csv:1: unknown column 'contianer' (did you mean \"container\"?)"),
        ("# a\n\npod,container,memory\nweb,web,lots\n", "usage.csv:4: memory: 'lots' is not a valid quantity"),
        (
            "time,pod,container,memory\n11/01/2026 00:00,web,web,1Gi\n",
            'usage.csv:2: "11/01/2026 00:00" is not a time (such as 2026-11-15T04:00:00Z, or seconds since 1970)',
        ),
        (
            "NAME  CPU(cores)  MEMORY(bytes)\nweb-7d8b9c4f5-x2k9p  12m  512Mi\n",
            f"usage.csv:2: shop/{POD} has several containers (state each: `kubectl top pods --containers` does; ",
        ),
    ],
    ids=["empty", "a heading alone", "percent alone", "a typo", "not an amount", "a date", "several containers"],
)
def test_what_is_not_understood_is_answered_with_what_to_write(capsys, tmp_path, text, message):
    code, _, said = rank(capsys, tmp_path, text)
    assert code == 2
    assert said.splitlines()[-1].startswith(f"podqos: error: {message}")


def test_containers_without_headers_are_not_taken_for_pods(capsys, tmp_path):
    manifests = DEPLOYMENT.replace("name: proxy", "name: istio-proxy")
    table = f"{POD}  istio-proxy  12m  64Mi\n{POD}  web  12m  512Mi\n"
    code, out, _ = rank(capsys, tmp_path, table, "-o", "json", manifests=manifests)
    assert code == 0
    assert json.loads(out)["evictionOrder"][0]["usage"] == (512 + 64) << 20
    one = rank(capsys, tmp_path, "debug  istio-proxy  12m  64Mi\n", "-o", "name", manifests=manifests)
    assert "left out" in one[2]
