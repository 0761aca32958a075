"""A guard that may not ask its kubelet finds the settings by the kubelet's command line and files, and says so."""

from __future__ import annotations

import json
import os
import re
from types import SimpleNamespace

import pytest

from cluster.certificates import Authority
from cluster.recorded import recorded_answer
from cluster.serving import Server
from guard.api_server import ApiServer
from guard.kubelets import REAL
from podqos.cli.main import main
from podqos.cluster.cluster import Cluster, connect
from podqos.cluster.kubeconfig import Access
from podqos.cluster.kubelets import Kubelets
from podqos.cluster.patience import ONCE
from podqos.errors import HostError
from podqos.guard import kubelet_files
from podqos.guard.kubelet_files import local_kubelet, local_node
from podqos.guard.settings import ask_kubelet, find_kubelet, last_node
from podqos.host.linux.procfs import Procfs
from podqos.manifest.kubelet import kubelet_settings_in
from podqos.manifest.pruning import pruned_kubelet

HEADER = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"
# As a kubelet v1.36 says it.
REFUSED = "Forbidden (user=system:node:node-1, verb=get, resource=nodes, subresource(s)=[configz proxy])"


class Machine:
    """A machine of this test's own: a ``/proc``, and files as the kubelet sees them."""

    def __init__(self, folder, monkeypatch):
        self.proc, self.usual = folder / "proc", folder / "usual.yaml"
        self.proc.mkdir()
        (self.proc / "stat").write_text("cpu 1 2\nbtime 1000000\n")
        monkeypatch.setattr(kubelet_files, "Procfs", lambda: Procfs(self.proc))
        monkeypatch.setattr(kubelet_files, "USUAL_FILE", str(self.usual))

    def run(self, pid, *words, namespaces=1, user=0, has_root=True):
        process = self.proc / str(pid)
        process.mkdir()
        (process / "cmdline").write_bytes(b"".join(word.encode() + b"\0" for word in words))
        numbers = "\t".join(str(pid) for _ in range(namespaces))
        (process / "status").write_text(f"Name:\tkubelet\nUid:\t{user}\t{user}\t{user}\t{user}\nNSpid:\t{numbers}\n")
        fields = " ".join(["S", *["0"] * 18, str(100 * os.sysconf("SC_CLK_TCK")), "0"])
        (process / "stat").write_text(f"{pid} (kubelet) {fields}\n")
        if has_root:
            (process / "root").mkdir()
        return self

    def write(self, pid, name, text, *, since_boot=50):
        file = self.proc / str(pid) / "root" / name.lstrip("/")
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(HEADER + text)
        os.utime(file, (1000000 + since_boot,) * 2)
        return self


@pytest.fixture
def machine(tmp_path, monkeypatch):
    return Machine(tmp_path, monkeypatch)


def test_the_file_of_the_running_kubelet_is_taken_and_named(machine):
    machine.run(7, "/bin/sh").run(812, "/usr/bin/kubelet", "--v", "2", "--config=/etc/kubelet.yaml", "--fail-swap-on")
    machine.write(812, "/etc/kubelet.yaml", "evictionHard: {memory.available: 700Mi}\ncgroupRoot: /here\n")
    found = local_kubelet("node-1")
    assert (found.configuration.eviction_hard, found.configuration.cgroup_root) == (
        {"memory.available": "700Mi"},
        "/here",
    )
    assert found.source == "/etc/kubelet.yaml and its flag --fail-swap-on, as the kubelet (process 812) was started"
    assert not found.trouble


def test_drop_ins_patch_the_file_in_order_of_their_names_and_flags_replace_both(machine):
    machine.run(
        812, "kubelet", "--alsologtostderr", "--config", "/etc/kubelet.yaml", "--config-dir", "/etc/kubelet.conf.d",
        "--kube_reserved=cpu=1", "--feature-gates=MemoryQoS=true",
    )  # fmt: skip
    machine.write(
        812,
        "/etc/kubelet.yaml",
        "kubeReserved: {memory: 1Gi}\nsystemReserved: {memory: 1Gi, cpu: 100m}\nmaxPods: 50\npodPidsLimit: 100\n"
        "featureGates: {NodeSwap: false, MemoryQoS: false}\n",
    )
    machine.write(812, "/etc/kubelet.conf.d/20.conf", "maxPods: 60\nsystemReserved: {cpu: null, memory: 2Gi}\n")
    machine.write(812, "/etc/kubelet.conf.d/10.conf", "maxPods: 55\nevictionHard: {memory.available: 1Gi}\n")
    machine.write(812, "/etc/kubelet.conf.d/15/a.conf", "podPidsLimit: 200\n")
    machine.write(812, "/etc/kubelet.conf.d/99.yaml", "maxPods: 1\n")
    found = local_kubelet("node-1")
    config = found.configuration
    assert (config.max_pods, config.pod_pids_limit) == (60, 200)
    assert (config.kube_reserved, config.system_reserved) == ({"cpu": "1"}, {"memory": "2Gi"})
    assert config.feature_gates == {"NodeSwap": False, "MemoryQoS": True}
    hard = {"memory.available": "1Gi", "nodefs.available": "10%", "imagefs.available": "15%"}
    assert hard.items() <= config.eviction_hard.items(), "a drop-in leaves the other defaults, which the file has"
    assert "/etc/kubelet.yaml, 3 drop-ins in /etc/kubelet.conf.d and its flags --kube-reserved" in found.source


def test_a_flag_for_thresholds_drops_those_of_the_file_and_the_defaults_that_it_would_merge(machine):
    machine.run(812, "kubelet", "--config=/a.yaml", "--eviction-hard=memory.available<300Mi", "--max-pods=0")
    machine.write(
        812, "/a.yaml", "mergeDefaultEvictionSettings: true\nevictionHard: {nodefs.available: 1%}\nmaxPods: 0\n"
    )
    config = local_kubelet("node-1").configuration
    assert config.eviction_hard == {"memory.available": "300Mi"}
    assert not config.merge_default_eviction_settings
    assert config.max_pods == 0, "a zero in a file means the default, in a flag zero"


def test_a_kubelet_without_a_file_has_the_thresholds_of_its_flags_alone(machine):
    machine.run(812, "kubelet", "--cgroup-driver=systemd")
    config = local_kubelet("node-1").configuration
    assert (config.eviction_hard, config.cgroup_driver) == ({}, "systemd")


def test_where_no_kubelet_is_seen_the_usual_file_is_taken(machine):
    machine.usual.write_text(HEADER + "cgroupRoot: /usual\n")
    found = local_kubelet("node-1")
    assert found.configuration.cgroup_root == "/usual"
    assert found.source == f"{machine.usual} (no kubelet process is visible)"
    machine.usual.unlink()
    with pytest.raises(HostError, match=r"no kubelet process is visible, and .*usual.yaml: No such file"):
        local_kubelet("node-1")


def test_a_file_that_the_kubelet_names_and_that_cannot_be_read_is_not_replaced_by_another(machine):
    machine.usual.write_text(HEADER)
    machine.run(812, "kubelet", "--config=/etc/of the host/kubelet.yaml", has_root=False)
    with pytest.raises(HostError, match=r"the kubelet reads /etc/of the host/kubelet.yaml, which cannot be read here"):
        local_kubelet("node-1")


def test_a_process_in_a_container_or_of_another_user_is_not_the_nodes_kubelet(machine):
    machine.usual.write_text(HEADER + "cgroupRoot: /usual\n")
    machine.run(900, "kubelet", "--eviction-hard=memory.available<1Ki", namespaces=2)
    machine.run(901, "/home/eve/kubelet", "--eviction-hard=memory.available<1Ki", user=os.geteuid() + 1000)
    assert local_kubelet("node-1").configuration.cgroup_root == "/usual"


def test_of_several_kubelets_the_one_with_the_nodes_name_counts(machine):
    machine.run(1, "kubelet", "--hostname-override=node-1", "--max-pods=1")
    machine.run(2, "hyperkube", "kubelet", "--hostname-override=node-2", "--max-pods=2")
    assert local_kubelet("node-2").configuration.max_pods == 2
    with pytest.raises(HostError, match=r"2 kubelets run here \(processes 1 and 2\)"):
        local_kubelet("node-3")


def test_a_file_that_changed_since_the_kubelet_started_is_said(machine):
    machine.run(812, "kubelet", "--config=/a.yaml").write(812, "/a.yaml", "", since_boot=200)
    assert local_kubelet("node-1").trouble.startswith("/a.yaml changed after the kubelet started")


def test_the_kubelet_of_another_node_is_not_this_nodes(machine):
    machine.run(812, "kubelet", "--hostname-override=Node-2")
    with pytest.raises(HostError, match=r"\(process 812\) is that of node node-2 \(--node node-2\)"):
        local_kubelet("node-1")
    assert local_kubelet("node-2").is_running


def test_the_node_has_the_name_that_the_running_kubelet_uses(machine, monkeypatch):
    monkeypatch.setattr(os, "uname", lambda: SimpleNamespace(nodename="Host-7"))
    assert local_node() == "host-7"
    assert local_node("node-last") == "node-last", "no kubelet is running"
    machine.run(812, "kubelet", "--hostname-override=Node-2")
    assert local_node("node-last") == "node-2"
    machine.run(813, "kubelet")
    assert local_node() == "host-7", "two names tell nothing"


@pytest.mark.parametrize("kind", ["pipe", "large"])
def test_a_file_that_never_ends_or_never_begins_is_not_read(machine, kind):
    machine.run(812, "kubelet", "--config=/a.yaml")
    file = machine.proc.joinpath("812", "root", "a.yaml")
    if kind == "pipe":
        os.mkfifo(file)
    else:
        file.touch()
        os.truncate(file, 1 << 40)
    with pytest.raises(HostError, match=r"the kubelet reads /a.yaml, .* here: (not a regular file|larger than 4Mi)"):
        local_kubelet("node-1")


def test_a_file_with_which_no_kubelet_starts_is_an_error_with_its_place(machine):
    machine.run(812, "kubelet", "--config=/a.yaml").write(812, "/a.yaml", "evictionSoft: {memory.available: 1Gi}\n")
    with pytest.raises(HostError, match=r"/a.yaml: evictionSoft.*: grace period must be specified"):
        local_kubelet("node-1")


def test_a_field_of_a_later_version_is_ignored_as_the_kubelet_that_runs_may_know_it(machine):
    machine.run(812, "kubelet", "--config=/a.yaml").write(812, "/a.yaml", "maxPods: 9\nyetToBeInvented: 1\n")
    assert local_kubelet("node-1").configuration.max_pods == 9


def cluster_at(api):
    return Cluster(Access(server=api.url), patience=ONCE)


def test_a_kubelet_that_may_no_longer_be_asked_has_the_settings_of_its_files(machine, tmp_path):
    api, state = ApiServer(), tmp_path / "state"
    api.configz = {"cgroupRoot": "/asked"}
    machine.usual.write_text(HEADER + "cgroupRoot: /file\n")
    with api.serving(), cluster_at(api) as cluster:
        assert ask_kubelet(cluster, api.node, state, None).configuration.cgroup_root == "/asked"
        api.refuses = lambda request: (503, "x", "it starts") if "/proxy/" in request.path else None
        with pytest.raises(HostError, match=r"did not answer.*503 it starts"):
            ask_kubelet(cluster, api.node, state, None)
        api.refuses = lambda request: (403, "Forbidden", REFUSED) if request.path.startswith("/api") else None
        found = ask_kubelet(cluster, api.node, state, None)
        assert found.configuration.cgroup_root == "/file"
        assert "403 Forbidden" in found.source
        assert find_kubelet(cluster, api.node, state, None).configuration.cgroup_root == "/file", "it is not kept"


def test_while_the_kubelet_restarts_its_settings_are_those_it_was_last_seen_with(machine, tmp_path):
    api = ApiServer()
    api.refuses = lambda request: (403, "Forbidden", REFUSED) if request.path.startswith("/api") else None
    machine.usual.write_text(HEADER + "cgroupRoot: /usual\n")
    machine.run(812, "kubelet", "--config=/a.yaml").write(812, "/a.yaml", "cgroupRoot: /own\n")
    with api.serving(), cluster_at(api) as cluster:
        assert ask_kubelet(cluster, api.node, tmp_path, None).configuration.cgroup_root == "/own"
        (machine.proc / "812/cmdline").write_bytes(b"")
        found = ask_kubelet(cluster, api.node, tmp_path, None)
        assert found.configuration.cgroup_root == "/own", "not those of a file that it does not use"
        assert found.source.startswith("those that the kubelet was last seen running with")
        machine.usual.unlink()
        assert find_kubelet(cluster, api.node, tmp_path, None).configuration == found.configuration
        assert last_node(tmp_path) == api.node
        machine.run(900, "kubelet", "--config=/b.yaml").write(900, "/b.yaml", "cgroupRoot: /other\n")
        assert ask_kubelet(cluster, api.node, tmp_path, None).configuration.cgroup_root == "/other"


def test_the_next_guard_needs_no_server_for_the_settings_in_files(machine, tmp_path):
    (tmp_path / "kubelet.json").write_text('{"node": "node-1", "version": "v1.34.0"}')
    machine.usual.write_text(HEADER + "cgroupRoot: /file\n")
    with Cluster(Access(server="http://127.0.0.1:1"), patience=ONCE) as cluster:
        found = find_kubelet(cluster, "node-1", tmp_path, None)
        assert (found.configuration.cgroup_root, found.profile.version) == ("/file", (1, 34))
        (tmp_path / "kubelet.json").unlink()
        assert find_kubelet(cluster, "node-1", tmp_path, None).configuration.cgroup_root == "/file"


# ---- the command, with an API server and a kubelet that refuse as real ones did --------------------------------------


@pytest.fixture(scope="module")
def authority(tmp_path_factory):
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture
def guard_run(authority, tmp_path, monkeypatch, capsys):
    """Return a function that runs ``podqos guard run --kubeconfig kubelet.conf``: exit code, settings, what is said."""
    for name in ("HTTPS_PROXY", "https_proxy", "NODE_NAME", "KUBECONFIG"):
        monkeypatch.delenv(name, raising=False)
    began = []

    class Guard:
        cgroups = SimpleNamespace(own="kubepods", version="v2")
        newer = None

        def __init__(self, settings, *_, ask):
            began.append(settings)
            assert ask() == settings, "asked again, it has the same settings"

        def run(self):
            pass

    monkeypatch.setattr("podqos.guard.running.Guard", Guard)

    def run():
        with (
            Server(
                lambda _: (403, {"Content-Type": "text/plain"}, REFUSED.encode()), tls=authority.serving()
            ) as kubelet,
            Server(_api_server(kubelet.port), tls=authority.serving()) as server,
        ):
            conf = tmp_path / "kubelet.conf"
            conf.write_text(_KUBECONFIG.format(server=server.url, authority=authority.certificate))
            state = ["--state", str(tmp_path / "state"), "--run", str(tmp_path / "run")]
            code = main(["guard", "run", "--kubeconfig", str(conf), "--node", "node-real", *state])
        return code, began, capsys.readouterr().err

    return run


_KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{{name: c, cluster: {{server: "{server}", certificate-authority: "{authority}"}}}}]
users: [{{name: u, user: {{token: t}}}}]
contexts: [{{name: x, context: {{cluster: c, user: u}}}}]
current-context: x
"""


def _api_server(port):
    node = {
        "kind": "Node",
        "metadata": {"name": "node-real"},
        "status": {
            "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
            "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
        },
    }

    def answer(request):
        if request.path == "/version":
            return json.dumps({"major": "1", "minor": "36", "gitVersion": "v1.36.4"}).encode()
        if "/proxy/" in request.path:
            return recorded_answer("node_proxy.json", "node-proxy-fine-grained-role")
        return json.dumps(node).encode()

    return answer


def test_guard_run_with_the_kubelets_credentials_takes_the_kubelets_file_and_says_which(guard_run, machine):
    machine.run(
        812, "/usr/bin/kubelet", "--config=/var/lib/kubelet/config.yaml", "--kubeconfig=/etc/kubernetes/kubelet.conf"
    )
    machine.write(812, "/var/lib/kubelet/config.yaml", "evictionHard: {memory.available: 700Mi}\n")
    code, (settings,), said = guard_run()
    assert code == 0
    assert settings.kubelet.eviction_hard == {"memory.available": "700Mi"}
    assert "(process 812)" in settings.kubelet_source, "its status says so later"
    assert said.count("kubelet settings: /var/lib/kubelet/config.yaml, as the kubelet (process 812) was started") == 1
    assert "cannot get nodes/configz as system:node:node-1 (403 Forbidden)" in said


def test_guard_run_says_the_403_where_no_file_helps(guard_run, machine):
    machine.run(1, "/sbin/init")
    code, began, said = guard_run()
    assert (code, began) == (3, [])
    assert "the kubelet may not be asked: cannot get nodes/configz as system:node:node-1 (403 Forbidden)" in said
    assert re.search(r"no kubelet process is visible, and .*--kubelet-config", said)
    assert said.count("\n") == 1


@pytest.mark.slow
@pytest.mark.skipif(REAL is None, reason="PODQOS_TEST_KUBELET names no kubeconfig")
def test_what_a_real_kubelet_was_started_with_is_what_it_answers():
    node = os.environ.get("PODQOS_TEST_NODE") or local_node()
    with connect(kubeconfig=REAL) as cluster:
        answer = Kubelets(cluster).ask(node, "configz", pruned_kubelet)
    asked, found = kubelet_settings_in("configz", answer).configuration, local_kubelet(node).configuration
    for name in (
        "eviction_hard", "eviction_soft", "eviction_soft_grace_period", "eviction_minimum_reclaim", "kube_reserved",
        "eviction_max_pod_grace_period", "system_reserved", "enforce_node_allocatable", "cgroup_root", "cgroup_driver",
        "cgroups_per_qos", "kernel_memcg_notification", "max_pods", "pod_pids_limit", "feature_gates", "fail_swap_on",
    ):  # fmt: skip
        assert getattr(found, name) == getattr(asked, name), name
