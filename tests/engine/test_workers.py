"""Blocks on several threads: results in order, few waiting, nobody left playing when something goes wrong."""

import gc
import hashlib
import os
import signal
import threading
import time

import jax
import jax.numpy as jnp
import pytest

import jaxbandit as jb
from jaxbandit.engine import workers
from jaxbandit.types import pytree


@pytest.mark.parametrize("count", [1, 3])
def test_results_come_in_order_and_here(count):
    taken = []

    def work(item, halt):
        time.sleep(0.02 * (item % 3 == 0))  # the first of three is the last to be done
        return item, threading.current_thread()

    workers.in_order(work, range(10), count, lambda result: taken.append((*result, threading.current_thread())))
    assert [item for item, _, _ in taken] == list(range(10))
    assert {here for _, _, here in taken} == {threading.main_thread()}
    threads = {there for _, there, _ in taken}
    assert threading.main_thread() not in threads and 1 <= len(threads) <= count  # on a busy machine one may be late


def test_few_results_wait():
    begun, most = [], []
    workers.in_order(lambda item, halt: begun.append(item), range(50), 2, lambda _: most.append(len(begun)))
    assert all(ahead <= taken + 3 for taken, ahead in enumerate(most, start=1))


@pytest.mark.parametrize("where", ["there", "here"])
@pytest.mark.parametrize("error", [ValueError, KeyboardInterrupt])
def test_what_goes_wrong_halts_the_others_and_is_raised(where, error):
    halted, begun = [], []

    def work(item, halt):
        begun.append(item)
        if item == 0:
            if where == "there":
                raise error("broken off")
            return item
        halted.append(halt.wait(timeout=10))
        raise InterruptedError

    def take(_):
        raise error("broken off")

    with pytest.raises(error, match="broken off"):
        workers.in_order(work, range(20), 2, take)
    assert halted and all(halted)
    assert len(begun) <= 4


def test_results_before_the_one_that_failed_are_taken():
    taken = []

    def work(item, halt):
        if item == 3:
            raise ValueError("broken off")
        return item

    with pytest.raises(ValueError, match="broken off"):
        workers.in_order(work, range(10), 2, taken.append)
    assert taken == [0, 1, 2]


def test_the_first_error_is_raised_whoever_plays_before_it():
    """The first item waits until the second has failed, and ends by halting."""

    def work(item, halt):
        if item == 1:
            raise ValueError("broken off")
        assert halt.wait(timeout=10)
        raise InterruptedError

    with pytest.raises(ValueError, match="broken off"):
        workers.in_order(work, range(2), 2, lambda _: None)


def test_threads_that_cannot_all_be_started_leave_none_behind(monkeypatch):
    start, before = threading.Thread.start, threading.active_count()
    started = []

    def limited(thread):
        if len(started) == 2:
            raise RuntimeError("can't start new thread")
        started.append(thread)
        start(thread)

    monkeypatch.setattr(threading.Thread, "start", limited)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        workers.in_order(lambda item, halt: item, range(10), 3, lambda _: None)
    assert threading.active_count() == before


@pytest.fixture
def interrupts():
    """Ctrl-C raises KeyboardInterrupt, also if this process was started in the background, where it is ignored."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def compute_for_long(*_):
    """Computes outside of Python, where no signal is heard."""
    hashlib.pbkdf2_hmac("sha256", b"", b"", 8_000_000)
    raise RuntimeError("nobody broke it off")


@pytree
class Littering:
    """Is traced for long, all the time in callbacks of the collector, inside of which Python drops what is raised."""

    def init(self, num_arms):
        return jnp.zeros(num_arms)

    def probabilities(self, state, t, key):
        here = threading.current_thread()

        def linger(phase, info):
            if threading.current_thread() is here:
                time.sleep(0.2)

        gc.callbacks.append(linger)
        try:
            for _ in range(5):  # two seconds
                gc.collect(0)
        finally:
            gc.callbacks.remove(linger)
        raise RuntimeError("nobody broke it off")

    def update(self, state, t, x, arm, loss):
        return state


def seconds_to_stop(work, error: type | tuple = KeyboardInterrupt) -> float:
    """Returns the time from an interrupt to the end of the work."""
    sent = []

    def interrupt():
        sent.append(time.perf_counter())
        os.kill(os.getpid(), signal.SIGINT)

    timer = threading.Timer(0.5, interrupt)
    timer.start()
    try:
        with pytest.raises(error, match="KeyboardInterrupt" if error is not KeyboardInterrupt else None):
            work()
    finally:
        timer.cancel()
    return time.perf_counter() - sent[0]


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("what", ["tracing", "compiling", "playing"])
def test_an_interrupt_is_heard_while_machine_code_is_made_or_played(what, monkeypatch):
    from jaxbandit.engine.native import cache, games
    from jaxbandit.engine.native import compile as compiler

    policy = Littering() if what == "tracing" else jb.UniINF(horizon=100)
    if what == "compiling":
        monkeypatch.setattr(cache, "read", lambda key: None)
        monkeypatch.setattr(games, "_known", {})
        monkeypatch.setattr(compiler, "object_code", compute_for_long)
    if what == "playing":
        advance = games.Block.advance
        monkeypatch.setattr(games.Block, "advance", lambda *args: (time.sleep(0.2), advance(*args))[1])

    def work():
        environment, engine = jb.Bernoulli(means=[0.2, 0.8]), jb.Engine(chunk=16)
        jb.simulate(policy, environment, horizon=1_000, num_seeds=2, record=[1_000], engine=engine)

    # A call under way is played to its end. On a busy machine a thread may have to wait for its turn: three tries.
    limit = 0.3 + 0.2 * (what == "playing")
    assert any(seconds_to_stop(work) < limit for _ in range(3))


@pytest.mark.usefixtures("interrupts")
@pytest.mark.parametrize("in_jit", [False, pytest.param(True, marks=pytest.mark.slow)])
def test_an_interrupt_is_heard_in_play(in_jit):
    keys, environment = jax.vmap(jb.game_key, (None, 0))(0, jnp.arange(2)), jb.Bernoulli(means=[0.2, 0.8])
    play = jax.jit(jb.play) if in_jit else jb.play
    jax.block_until_ready(play(jb.UCB1(), environment, keys, jnp.array([1])))

    def work():
        jax.block_until_ready(play(jb.UCB1(), environment, keys, jnp.array([300_000_000])))  # half a minute

    error = (jax.errors.JaxRuntimeError, ValueError) if in_jit else KeyboardInterrupt
    assert any(seconds_to_stop(work, error) < 0.5 for _ in range(3))
