"""The C client of ``benchmarks/``: it measures, checks, and sends every client's own id."""

import pytest
from bench_server import reply, result

from a2mcp.bench.plan import Plan, Step, resolve
from benchmarks.bars import Bar
from benchmarks.loader import PythonLoader, best


@pytest.fixture(scope="module")
def loader(tmp_path_factory):
    """The compiled client."""
    found = best(tmp_path_factory.mktemp("load"))
    if isinstance(found, PythonLoader):
        pytest.skip("no C compiler for load.c")
    return found


def plan_for(url):
    return Plan(address=resolve(url), steps=(Step(tool="echo"),), clients=3, seconds=0.3, warmup=0.1)


def test_the_c_client_measures_and_gives_each_client_its_own_id(serve, loader):
    """Issue: a load generator that is not the bottleneck."""
    server = serve(lambda request: result(request, note="expected"))
    sample = loader.put(plan_for(server.url), "expected")
    assert sample.errors == 0
    assert sample.calls > 0
    assert 0 < sample.p50 <= sample.p90 <= sample.p99 <= sample.max
    assert {request.message["id"] for request in server.asked("tools/call")} == {10**9, 10**9 + 1, 10**9 + 2}


@pytest.mark.parametrize("spoil", [result, lambda _: reply(b"expected", status="500 Oops")])
def test_the_c_client_counts_a_wrong_reply(serve, loader, spoil):
    """Ours: a fast error is not a fast server."""
    server = serve(lambda request: spoil(request) if "tools/call" in str(request.body) else result(request))
    sample = loader.put(plan_for(server.url), "expected")
    assert sample.errors > 0
    assert sample.calls == 0


def test_the_c_client_reads_chunks_and_reconnects(serve, loader):
    """RFC 9112 §7.1 and §9.6."""

    def chunked(request):
        if request.message.get("method") != "tools/call":
            return result(request)
        head = b"HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\nconnection: close\r\n\r\n"
        return head + b"8\r\nexpected\r\n0\r\n\r\n"

    sample = loader.put(plan_for(serve(chunked).url), "expected")
    assert (sample.errors, sample.calls > 0) == (0, True)


@pytest.mark.parametrize(
    ("value", "at_least", "verdict"),
    [(5.0, True, "stretch"), (3.0, True, "pass"), (2.9, True, "FAIL"), (None, True, "not measured")],
)
def test_a_bar_is_met_or_missed(value, at_least, verdict):
    """Issue: the table "What it must show"."""
    assert Bar(what="x", value=value, bar=3.0, stretch=5.0, unit="", at_least=at_least).verdict == verdict


def test_a_bar_from_above_is_met_by_less():
    """Issue: memory 45 MB, stretch 33 MB."""
    verdicts = [Bar(what="x", value=v, bar=45, stretch=33, unit=" MB", at_least=False).verdict for v in (30, 40, 50)]
    assert verdicts == ["stretch", "pass", "FAIL"]
