"""Tables of usage in the forms that people have: what `kubectl top`, Grafana, Prometheus and spreadsheets write."""

from __future__ import annotations

from random import Random

import pytest

from podqos.advice.sizing.samples import read_samples
from podqos.errors import InputError
from podqos.manifest.usage_tables import labels_of
from podqos.orders.usage import read_usage

MI = 1 << 20
POD = "web-7d8b9c4f5-x2k9p"
LABELS = f'container=""app"", namespace=""shop"", pod=""{POD}""'
APP = (f"shop/{POD}", "app")

FORMS = {
    "our own, in any case": f"Time,Namespace,Pod,Container,Memory\n2026-11-10T00:00:00Z,shop,{POD},app,100Mi\n",
    "other names for columns": f"time,ns,Pod Name,container_name,memory_bytes\n1794268800,shop,{POD},app,104857600\n",
    "the unit in the heading": f"time,namespace,pod,container,Memory (MiB)\n1794268800,shop,{POD},app,100\n",
    "further columns": f"time,namespace,pod,container,memory,image,uid\n1794268800,shop,{POD},app,100Mi,nginx,4f\n",
    "semicolons": f"time;namespace;pod;container;memory\n1794268800;shop;{POD};app;100Mi\n",
    "tabs": f"time\tnamespace\tpod\tcontainer\tmemory\n1794268800\tshop\t{POD}\tapp\t100Mi\n",
    "a spreadsheet's encoding": f"\ufefftime,namespace,pod,container,memory\n1794268800,shop,{POD},app,100Mi\n",
    "Grafana, joined by time": f'"Time","{{{LABELS}}}"\n2026-11-10 00:00:00,104857600\n',
    "Grafana, for Excel": f'sep=,\n"Time","{{{LABELS}}}"\n2026-11-10 00:00:00,104857600\n',
    "Grafana, formatted": f'"Time","container_memory_working_set_bytes{{{LABELS}}}"\n2026-11-10 00:00:00,100 MiB\n',
    "Grafana, joined by time, with a legend": f'"Time","shop/{POD}/app"\n2026-11-10 00:00:00,100 MiB\n',
    "Grafana, series as rows": f'"Series";"Time";"Value"\n"{{{LABELS}}}";"2026-11-10T00:00:00+00:00";"104857600"\n',
    "Grafana, labels to fields": f"Time,container,namespace,pod,Value #A\n1794268800000,app,shop,{POD},104857600\n",
    "promtool": f'{{container="app", namespace="shop", pod="{POD}"}} =>\n104857600 @[1794268800]\n',
}


@pytest.mark.parametrize("text", FORMS.values(), ids=FORMS)
def test_a_sample_of_memory_is_the_same_in_every_form(text):
    (samples,) = read_samples("u", text.encode())
    assert (samples.pod, samples.container) == APP
    assert samples.memory_bytes == (100 * MI,)
    assert samples.memory_times_us == (1_794_268_800_000_000,)
    assert samples.are_dates


TOPS = {
    "with containers": f"POD NAME CPU(cores) MEMORY(bytes)\n{POD} app 250m 100Mi\n",
    "of all namespaces": f"NAMESPACE POD NAME CPU(cores) MEMORY(bytes)\nshop {POD} app 250m 100Mi\n",
    "without headings": f"{POD}   app   250m   100Mi\n",
    "of all namespaces, without headings": f"shop   {POD}   app   250m   100Mi\n",
    "of whole pods, without headings": f"{POD}   250m   100Mi\n",
    "with swap": f"POD NAME CPU(cores) MEMORY(bytes) SWAP(bytes)\n{POD} app 250m 100Mi 0Mi\n",
}


@pytest.mark.parametrize("text", TOPS.values(), ids=TOPS)
def test_what_kubectl_top_prints_is_a_sample(text):
    (samples,) = read_samples("u", text.encode())
    assert samples.pod.rpartition("/")[2] == POD
    assert (samples.memory_bytes, samples.cpu_milli) == ((100 * MI,), (250,))


def test_kubectl_top_printed_again_and_again_is_a_history():
    once = f"POD NAME CPU(cores) MEMORY(bytes)\n{POD} app 250m 100Mi\n"
    (samples,) = read_samples("u", (once + once.replace("100Mi", "120Mi") + "\n").encode())
    assert samples.memory_bytes == (100 * MI, 120 * MI)


def test_a_column_per_series_has_samples_of_each_pod_and_none_where_a_cell_is_empty():
    text = '"Time","shop/a/app","shop/b/app"\n2026-11-10 00:00:00,1048576,\n2026-11-10 00:01:00,NaN,2 MiB\n'
    samples = read_samples("u", text.encode())
    assert [(each.pod, each.memory_bytes) for each in samples] == [("shop/a", (MI,)), ("shop/b", (2 * MI,))]


def test_two_servers_that_scraped_the_same_pod_are_one_history():
    rows = [f'"{{{LABELS}, replica=""{name}""}}"' for name in ("a", "b")]
    text = f'"Time",{",".join(rows)}\n2026-11-10 00:00:00,1048576,2097152\n2026-11-10 00:01:00,3145728,\n'
    (samples,) = read_samples("u", text.encode())
    assert samples.memory_bytes == (2 * MI, 3 * MI)


BAD = {
    "a typo": ("pod,memroy\nweb,1Gi\n", "u:1: unknown column 'memroy' (did you mean \"memory\"?)"),
    "an unknown time": ('"Time","shop/a/app"\n11/10/2026 12:00,1\n', "u:2: '11/10/2026 12:00' is not a time"),
    "a time beyond all": ("time,pod,memory\n1e30,a,1\n", "u:2: 1e30 is not a time"),
    "a percentage": ("pod,cpu\nweb,40%\n", "u:2: '40%' is not a valid quantity"),
    "a short row": ('"Time","shop/a/app","shop/b/app"\n2026-11-10,1\n', "u:2: the row has more or fewer columns"),
    "no value": (f'"Series";"Time"\n"{{{LABELS}}}";"2026-11-10"\n', "u:1: the column Value is missing"),
    "a broken promtool line": ('{pod="a"} =>\n1 @[5]\nnonsense\n', "u:3: not a valid sample"),
    "mixed times": ("time,pod,memory\n2026-11-10,a,1\n60,a,2\n", "u:3: absolute and relative times are mixed"),
}


@pytest.mark.parametrize(("text", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_read_is_one_line_at_its_place(text, message):
    with pytest.raises(InputError) as caught:
        read_samples("u", text.encode())
    assert message in str(caught.value)
    assert "\n" not in str(caught.value)


def test_labels_may_hold_quotes_commas_and_braces():
    assert labels_of(r'm{a="x,y}", b="say \"hi\""}') == {"__name__": "m", "a": "x,y}", "b": 'say "hi"'}
    assert labels_of("web") is None
    assert labels_of("{}") == {}


PIECES = [
    *',;\t\n"{}=/%',
    "=>",
    "@[5]",
    "1e99",
    "1e20",
    "NaN",
    "-5",
    "9" * 20,
    "pod",
    "time",
    "memory",
    "Value",
    "Series",
]
PIECES += ["\0", "\ufeff", "9999-12-31", "0001-01-01", "1e-99", "+Inf", " MiB"]


@pytest.mark.parametrize("seed", range(2))
def test_whatever_a_table_holds_it_is_samples_or_one_line(seed):
    draw = Random(seed)  # noqa: S311 - drawn examples
    forms = [*FORMS.values(), *TOPS.values(), *(text for text, _ in BAD.values())]
    for _ in range(500):
        text = draw.choice(forms)
        for _ in range(draw.randint(1, 5)):
            begin = draw.randint(0, len(text))
            text = text[:begin] + draw.choice(PIECES) + text[begin + draw.choice([0, 0, 1, 3, 10]) :]
        for read in (read_samples, read_usage):
            message = ""
            try:
                read("u", text.encode())
            except InputError as error:
                message = str(error)
            assert "\n" not in message, text
