"""The bits of a game are the same on every processor, for every width, and however its rounds are dealt out.

Nothing here is random but the places at which calls are cut, which a fixed seed chooses: there are no false alarms.
"""

import functools
import hashlib
import pathlib
import platform
import shutil
import subprocess

import jax
import numpy as np
import pytest
from llvmlite import binding as llvm

import jaxbandit as jb
from jaxbandit.engine import workers
from jaxbandit.engine.native import compile as compiler
from jaxbandit.engine.native.games import Games, lanes_of, programs_of
from jaxbandit.engine.native.kernel import Writer
from tests.support.blocks import keys_of, parameters_of, part, shape_of
from tests.support.helpers import some

LANES, HORIZON = 40, 600
RECORD = np.array([1, 2, 63, 64, 65, 300, 301, 600])

PARETO = jb.Pareto(means=[0.5, 1.0, 1.0], tail_index=1.6)
SWITCHING = jb.Switching(PARETO, lengths=[3, 50, 120, 300])
KNOWN = {"moment_order": 1.5, "moment_bound": 2.0}

MANY = jb.Pareto(means=np.linspace(0.5, 1.5, 100), tail_index=1.6)

CASES = {
    "uniinf": (jb.UniINF(horizon=HORIZON), PARETO),
    "htinf": (jb.HTINF(**KNOWN), SWITCHING),
    "robust_ucb": (jb.RobustUCB(**KNOWN), PARETO),
    "thompson": (jb.GaussianThompson(), SWITCHING),
    "adar_ucb": (jb.AdaRUCB(horizon=HORIZON), SWITCHING),
}
DOUBLE = {f"{name}, float64": CASES[name] for name in ("uniinf", "robust_ucb", "thompson", "adar_ucb")}
LARGE = {
    "uniinf, K = 100": (jb.UniINF(horizon=HORIZON), MANY),
    "htinf, K = 100": (jb.HTINF(**KNOWN), jb.Switching(MANY, lengths=[3, 50, 120, 300])),
    "robust_ucb, K = 100": (jb.RobustUCB(**KNOWN), MANY),
}
BOTH = {"uniinf, K = 100, float64": LARGE["uniinf, K = 100"]}
ALL = CASES | DOUBLE | LARGE | BOTH

# What every machine and every version of LLVM has to give. Raise NUMERICS in jaxbandit/store/cells.py when they change.
PINNED = {
    "uniinf": "c76db15d660580993d816eda5b587a16108cc74f9ec2328366c53b6dafde7e77",
    "htinf": "1c3115acb2ca57579182888ecc773993a6b3727eb66a0848a8f8717b713c19fc",
    "robust_ucb": "4dfed839fcd350d229b15523024bbfac92f0f1d60a9bf1613763d2bbe5299d04",
    "thompson": "e6685501edda52258383d41c4ad4e925aee23ff2a2c8c0bf942c6d111ecaab96",
    "adar_ucb": "8cfd448510081efa26cbbf9340101e7a5fa58e9902fdb180bb8dab176113262c",
    "uniinf, float64": "665be8a61f7d3cf9a9392698461a6484d0ea9cdf621d8777c9287b1056b616bc",
    "robust_ucb, float64": "ecd99ca909bcad1ea9d9c46c624e6a81304b0bd306495fa28972d37e363da76c",
    "thompson, float64": "e40e9337d4850d580c9c97717e999579daa3e5d76d0a30deda6c454b60eccdd8",
    "adar_ucb, float64": "0ca9ec500baea061a61ec8c54f7c23df8c5d8799a99c84e3f314039c9a225512",
    "uniinf, K = 100": "f80d88d8591c736754177c2858421e505ad347a06416be1cdf264b240dfad794",
    "htinf, K = 100": "970f0b7baeaa29ee819acd47ec98a5d00ea1c379a751de77ee4091e932de227e",
    "robust_ucb, K = 100": "545c13fcc5bfa529b16a77b14c892af634189e8d77e35825d8e9a409f3768b0e",
    "uniinf, K = 100, float64": "bbb241d64944ae0ed7d7e8877c885aeceb70808cf4acb2fc045a65fbcfa040ec",
}


def cases(fast):
    """All cases as parameters; of those that only the slow suite plays the fast suite has a relative."""
    return pytest.mark.parametrize("name", some(fast, [name for name in ALL if name not in fast]))


few, most = cases(["uniinf", "robust_ucb"]), cases(list(CASES))


def precision(name):
    """Sets the working dtype of a case."""
    return jax.enable_x64(name.endswith("float64"))


@functools.cache
def case(name):
    """The shape, parameters and keys of the games of a case."""
    policy, environment = ALL[name]
    with precision(name):
        shape = shape_of(policy, environment)
        assert shape.dtype == ("float64" if name.endswith("float64") else "float32")
        return shape, parameters_of(shape, policy, environment, LANES), keys_of(LANES)


def played(games, parameters, keys, cuts=(), moved=False):
    """Returns all that games hand out, and their final carry, lanes last.

    Args:
      games: The machine code.
      parameters: Of all lanes.
      keys: Of all lanes.
      cuts: Rounds after which a call ends.
      moved: Whether the games go on in another block after each call.
    """
    block, t, handed_out = games.block(parameters, keys), 0, []
    block.start()
    for until in [*cuts, HORIZON]:
        record = RECORD[slice(*np.searchsorted(RECORD, [t, until], side="right"))]
        handed_out.append(block.advance(t, until, record)[0])
        t = until
        if moved:
            carry, block = block.carry(), games.block(parameters, keys)
            block.start(carry)
    return [np.concatenate(leaves) for leaves in zip(*handed_out, strict=True)] + block.carry()


def digest(leaves):
    """Returns the SHA-256 over arrays, all NaN as one pattern of bits."""
    found = hashlib.sha256()
    for leaf in leaves:
        leaf = np.array(leaf)
        if leaf.dtype.kind == "f":
            leaf[np.isnan(leaf)] = np.nan
        found.update(f"{leaf.dtype.newbyteorder('<').str} {leaf.shape}".encode())
        found.update(leaf.astype(leaf.dtype.newbyteorder("<")).tobytes())
    return found.hexdigest()


def joined(parts):
    """The leaves of several blocks as those of one."""
    return [np.concatenate(leaves, axis=-1) for leaves in zip(*parts, strict=True)]


@functools.cache
def games_of(name, width=None):
    """Machine code for the host, at its usual width."""
    with precision(name):
        shape = case(name)[0]
        return Games(shape, width or lanes_of(shape))


@cases([*CASES, "uniinf, float64", "uniinf, K = 100"])
def test_the_bits_are_those_of_any_other_machine(name):
    _, parameters, keys = case(name)
    leaves = played(games_of(name), parameters, keys)
    assert all(np.isfinite(leaf).all() for leaf in leaves)
    assert leaves[0].sum() == LANES * HORIZON, "the pulls of all rounds"
    assert digest(leaves) == PINNED[name]


def test_a_digest_sees_every_array():
    _, parameters, keys = case("uniinf")
    leaves = played(games_of("uniinf"), parameters, keys)
    for n, leaf in enumerate(leaves):
        other = [leaf.copy() for leaf in leaves]
        other[n].view(np.uint8).reshape(-1)[-1] ^= 1
        assert digest(other) != digest(leaves), leaf.shape
    assert digest(played(games_of("uniinf"), parameters, keys_of(LANES, seed=1))) != digest(leaves)


@few
@pytest.mark.parametrize("width", [4, 8, 16])
def test_bits_do_not_depend_on_the_width(name, width):
    _, parameters, keys = case(name)
    assert digest(played(games_of(name, width), parameters, keys)) == PINNED[name]


PROCESSORS = {
    "SSE2": ("x86-64", "", ()),
    "SSE4.2": ("nehalem", "", ("sse4.2",)),
    "AVX2": ("haswell", "", ("avx2", "fma")),
}


only_x86 = pytest.mark.skipif(
    platform.machine().lower() not in ("x86_64", "amd64"), reason="these instructions are those of x86-64"
)


@only_x86
@few
@pytest.mark.parametrize("processor", PROCESSORS)
def test_bits_do_not_depend_on_the_instructions(name, processor):
    cpu, features, needed = PROCESSORS[processor]
    missing = [feature for feature in needed if f"+{feature}" not in compiler.host_features().split(",")]
    if missing:
        pytest.skip(f"this processor has no {' and no '.join(missing)}")
    shape, parameters, keys = case(name)
    games = Games(shape, 8, cpu=cpu, features=features)
    assert digest(played(games, parameters, keys)) == PINNED[name]


@only_x86
def test_code_for_a_lesser_processor_is_other_code():
    """Or the test before this one would compare one program with itself."""
    source = games_of("uniinf", 8).writer.source().text
    assert len({compiler.object_code(source, cpu, features) for cpu, features, _ in PROCESSORS.values()}) == 3


@most
@pytest.mark.parametrize("lanes", [1, 7, 40])
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_do_not_depend_on_blocks_and_threads(name, lanes, threads):
    shape, parameters, keys = case(name)
    games, parts = games_of(name), []

    def play(first, halt):
        return played(games, *part(shape, parameters, keys, slice(first, first + lanes)))

    workers.in_order(play, range(0, LANES, lanes), threads, parts.append)
    assert len(parts) == -(-LANES // lanes)
    assert digest(joined(parts)) == PINNED[name]


@most
@pytest.mark.parametrize("moved", [False, True], ids=["in place", "moved"])
def test_bits_do_not_depend_on_calls(name, moved):
    _, parameters, keys = case(name)
    for seed in range(3):
        cuts = np.sort(np.random.default_rng(seed).choice(np.arange(1, HORIZON), 20, replace=False)).tolist()
        assert digest(played(games_of(name), parameters, keys, cuts, moved)) == PINNED[name], cuts


# Another family of processors, emulated


TOOLS = {"aarch64-linux-gnu-gcc": "gcc-aarch64-linux-gnu libc6-dev-arm64-cross", "qemu-aarch64": "qemu-user"}


def aarch64_object(text):
    """Machine code for 64-bit ARM, by the passes that the host's code has."""
    llvm.initialize_all_targets()
    llvm.initialize_all_asmprinters()
    target = llvm.Target.from_triple("aarch64-unknown-linux-gnu")
    machine = target.create_target_machine(cpu="generic", features="", opt=3, reloc="static", codemodel="small")
    return machine.emit_object(compiler.optimised(text, machine))


def run_on_aarch64(directory, writer, source, parameters, keys):
    """What ``played`` returns, by a program under emulation."""
    main = pathlib.Path(__file__).parents[1] / "support" / "aarch64_main.c"
    files = {name: str(directory / name) for name in ("kernel.o", "program", "in", "out")}
    pathlib.Path(files["kernel.o"]).write_bytes(aarch64_object(source.text))
    command = ["aarch64-linux-gnu-gcc", "-static", "-O1", "-Wall", "-Werror", str(main), files["kernel.o"]]
    subprocess.run([*command, "-lm", "-o", files["program"]], check=True)

    programs, width, lanes = writer.programs, writer.width, keys.shape[-1]
    assert lanes % width == 0
    groups = lanes // width
    own = writer.parameters.allocate(groups)
    writer.parameters.write(own, [p for p, shared in zip(parameters, programs.shared, strict=True) if not shared])
    tables = [np.ascontiguousarray(p) for p, shared in zip(parameters, programs.shared, strict=True) if shared]
    words = np.ascontiguousarray(np.moveaxis(keys.reshape(2, groups, width), 0, 1))
    carry = writer.carry.allocate(groups)
    outs = [np.empty((len(RECORD), *leaf.shape, lanes), leaf.dtype) for leaf in programs.handed_out]
    head = [groups, lanes, HORIZON, len(RECORD), len(tables), len(outs)]
    head += [own.nbytes, carry.nbytes, words.nbytes, source.workspace]
    head += [array.nbytes for array in (*tables, *outs)] + RECORD.tolist()
    parts = [np.array(head, np.int64), own, words, *tables]
    pathlib.Path(files["in"]).write_bytes(b"".join(array.tobytes() for array in parts))
    subprocess.run(["qemu-aarch64", files["program"], files["in"], files["out"]], check=True, timeout=300)
    data = pathlib.Path(files["out"]).read_bytes()
    assert len(data) == carry.nbytes + sum(out.nbytes for out in outs)
    place = 0
    for array in (carry, *outs):
        array[...] = np.frombuffer(data, array.dtype, array.size, place).reshape(array.shape)
        place += array.nbytes
    return outs + writer.carry.read(carry, lanes)


@pytest.mark.slow
@most
@pytest.mark.parametrize("width", [4, 8])
def test_bits_are_those_of_another_family_of_processors(name, width, tmp_path):
    missing = [f"{tool} (Debian: {package})" for tool, package in TOOLS.items() if not shutil.which(tool)]
    if missing:
        pytest.skip(f"not installed: {', '.join(missing)}")
    shape, parameters, keys = case(name)
    with precision(name):
        writer = Writer(programs_of(shape), width, "aarch64", compiler.llvm_version()[0])
        source = writer.source()
    leaves = run_on_aarch64(tmp_path, writer, source, parameters, keys)
    assert leaves[0].sum() == LANES * HORIZON
    assert digest(leaves) == PINNED[name]
