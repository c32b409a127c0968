"""What a reader of a page has beside the checkout: a cluster's objects, a bill, a Prometheus with a day of GPUs."""

import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

from pages import ROOT
from shell import Shell

DAY_S, STEP_S = 86_400, 60
TRACE = "job_id,submit_s,duration_s,gpus,gpu_milli,gpu_spec,vc,priority,group\na,0,60,1,1000,,team,,\n"


def give(folder: Path) -> None:
    """Put files there that are the reader's own: a cluster's objects, a trace, yesterday's bill of a node."""
    for name in ("pods.json", "nodes.json"):
        shutil.copy(ROOT / "examples" / "cluster" / name, folder / name)
    (folder / "trace.csv").write_text(TRACE)
    end = datetime.now(UTC).replace(hour=0, minute=0, second=0, microsecond=0)
    begin = end - timedelta(days=1)
    (folder / "bill.csv").write_text(
        "BilledCost,BillingCurrency,ChargePeriodStart,ChargePeriodEnd,ResourceId,Tags\n"
        f'12.24,USD,{begin:%Y-%m-%dT%H:%M:%SZ},{end:%Y-%m-%dT%H:%M:%SZ},i-0abc,"{{""team"": ""nlp""}}"\n'
    )


@contextmanager
def prometheus(shell: Shell) -> Iterator[None]:
    """A Prometheus where the shell's ``prometheus:9090`` leads, with the last day of the GPUs of three owners."""
    folder = shell.folder / "prometheus"
    folder.mkdir()
    (folder / "day.txt").write_text(_day(int(time.time()) // STEP_S * STEP_S))
    (folder / "prometheus.yml").write_text("{}")
    made = ["promtool", "tsdb", "create-blocks-from", "openmetrics", "day.txt", "data"]
    subprocess.run(made, cwd=folder, check=True, capture_output=True)
    words = ["--config.file=prometheus.yml", "--storage.tsdb.path=data", "--storage.tsdb.retention.time=1y"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prometheus", *words, f"--web.listen-address=127.0.0.1:{shell.ports[9090]}"],
            cwd=folder, stdout=log, stderr=log,
        )  # fmt: skip
    try:
        shell.answers(shell.ports[9090])
        yield
    finally:
        process.kill()
        process.wait()


def _day(end: int) -> str:
    """Two quiet replicas that serve and a notebook that sleeps, on devices of 80 GiB; a training of six hours."""
    out: dict[str, list[str]] = {}
    owners = (("web", "chat-0", 30.0, 9000), ("web", "chat-1", 30.0, 9000), ("lab", "notebook-0", 0.0, 500))
    for at in range(end - DAY_S - 7200, end + 1, STEP_S):
        for n, (namespace, pod, busy, used) in enumerate(owners):
            who = f'gpu="{n}",UUID="GPU-{n}",Hostname="n1",pod="{pod}",namespace="{namespace}"'
            for metric, value in (("GPU_UTIL", busy), ("FB_USED", used), ("FB_FREE", 81920 - used)):
                out.setdefault(f"DCGM_FI_DEV_{metric}", []).append(f"{{{who}}} {value} {at}")
    begin = end - 8 * 3600
    for at in range(begin, begin + 6 * 3600 + 1, STEP_S):
        who = 'namespace="ml",pod="train-1",uid="u1"'
        asked = f'{{{who},container="c",resource="nvidia_com_gpu"}} 8 {at}'
        out.setdefault("kube_pod_container_resource_requests", []).append(asked)
        for metric, moment in (("created", begin), ("start_time", begin + 300), ("completion_time", begin + 6 * 3600)):
            if at >= moment:
                out.setdefault(f"kube_pod_{metric}", []).append(f"{{{who}}} {moment} {at}")
    said = [f"# TYPE {name} gauge\n" + "".join(f"{name}{row}\n" for row in rows) for name, rows in out.items()]
    return "".join(said) + "# EOF\n"
