"""The elementary functions against mpmath, and their bits against one another."""

import ctypes
import ctypes.util
import math

import numpy as np
import pytest

from jaxbandit.engine.native import elementary
from jaxbandit.engine.native.elementary import error_functions, gamma_functions, logarithms
from jaxbandit.engine.native.emit import Function, Value

mpmath = pytest.importorskip("mpmath")
binding = pytest.importorskip("llvmlite.binding")

INF, NAN = math.inf, math.nan
DTYPES = {"float": np.float32, "double": np.float64}
TWO_ARGUMENTS = ("pow", "atan2")
LIMITS = {"exp": 2, "exp2": 2, "log": 2, "log1p": 2, "log2": 2, "cos": 2}  # In ulp; 4 for all others.
ABSOLUTE = {"digamma": 4}  # In eps: enough if the relative error is larger, near zeros of the function.
SMALLEST = {"float": -149, "double": -1074}  # The exponents of the smallest subnormal and of infinity.
LARGEST = {"float": 128, "double": 1024}


# Compilation


def prepare():
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    Function.llvm_version = binding.llvm_version_info[0]
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    for name in ("fma", "fmaf", "floor", "floorf"):  # What a processor without these instructions calls.
        binding.add_symbol(name, ctypes.cast(getattr(library, name), ctypes.c_void_p).value)


def written(function, kind, width, count):
    """The module with @f, which applies the function to rows of ``width`` numbers."""
    f = Function(width)

    def body(row, _):
        arguments = [f.load(Value(name, "ptr", False), row, kind) for name in ("%x", "%y")[:count]]
        f.store(function(f, *arguments), Value("%out", "ptr", False), row)
        return []

    f.loop(f.constant(0, "i64"), Value("%n", "i64", False), [], body)
    head = "define void @f(ptr noalias %x, ptr noalias %y, ptr noalias %out, i64 %n) {\nentry:"
    return "\n".join([head, *f.lines, "  ret void", "}", *f.declared.values(), ""])


class Compiled:
    """A function on arrays, compiled for the host or for a named processor."""

    def __init__(self, function, kind, *, count=1, width=8, cpu=None):
        prepare()
        module = binding.parse_assembly(written(function, kind, width, count))
        module.verify()
        features = binding.get_host_cpu_features().flatten() if cpu is None else ""
        machine = binding.Target.from_default_triple().create_target_machine(
            cpu=cpu or binding.get_host_cpu_name(), features=features, opt=3
        )
        builder = binding.create_pass_builder(machine, binding.create_pipeline_tuning_options(speed_level=3))
        builder.getModulePassManager().run(module, builder)
        self.engine = binding.create_mcjit_compiler(module, machine)
        self.engine.finalize_object()
        address = self.engine.get_function_address("f")
        self.call = ctypes.CFUNCTYPE(None, *[ctypes.c_void_p] * 3, ctypes.c_int64)(address)
        self.width, self.dtype = width, DTYPES[kind]

    def __call__(self, x, y=None):
        rows = -(-x.size // self.width)
        arrays = [self.rows(np.zeros(0) if a is None else a, rows) for a in (x, y, None)]
        self.call(*(a.ctypes.data for a in arrays), rows)
        return arrays[2][: x.size].copy()

    def rows(self, values, count):
        """The values in whole aligned rows, filled up with zeros."""
        room = np.zeros(count * self.width + 128, self.dtype)
        start = -room.ctypes.data % 512 // room.itemsize
        aligned = room[start : start + count * self.width]
        aligned[: values.size] = values
        return aligned


def compiled(name, kind, **options):
    return Compiled(elementary.FUNCTIONS[name], kind, count=2 if name in TWO_ARGUMENTS else 1, **options)


# The truth


def true_log(x):
    return mpmath.log(x) if x > 0 else -mpmath.inf if x == 0 else mpmath.nan


def true_pow(x, y):
    if y == 0 or x == 1:
        return mpmath.mpf(1)
    if x < 0:
        return -true_pow(-x, y) if int(y) % 2 else true_pow(-x, y)  # Only integer y are asked for.
    return mpmath.power(x, y)


def true_erf_inv(y):
    """Halley's iteration on erf, or on erfc where erf is nearly 1."""
    if y == 0:
        return y
    size = abs(y)
    w = -mpmath.log((1 - size) * (1 + size))
    x = size if size < 0.5 else mpmath.sqrt(w - mpmath.log(w + 1) / 2)
    for _ in range(40):
        error = size - mpmath.erf(x) if size < 0.5 else mpmath.erfc(x) - (1 - size)
        step = error * mpmath.sqrt(mpmath.pi) / 2 * mpmath.exp(x * x)
        step = step / (1 + x * step)
        x += step
        if abs(step) < mpmath.mpf(10) ** -20 * x:  # The next error is its cube.
            return mpmath.sign(y) * x
    raise AssertionError(f"no convergence at {y}")


TRUTH = {
    "exp": mpmath.exp,
    "exp2": lambda x: mpmath.power(2, x),
    "expm1": mpmath.expm1,
    "log": true_log,
    "log2": lambda x: true_log(x) / mpmath.log(2),
    "log1p": lambda x: true_log(mpmath.mpf(0)) if x == -1 else mpmath.log1p(x),
    "pow": true_pow,
    "asinh": lambda x: mpmath.sign(x) * mpmath.asinh(abs(x)),
    "erf_inv": true_erf_inv,
    "lgamma": lambda x: mpmath.loggamma(x) if x > 0 else mpmath.log(abs(mpmath.gamma(x))),
    "cbrt": lambda x: mpmath.sign(x) * mpmath.cbrt(abs(x)),
    "logistic": lambda x: 1 / (1 + mpmath.exp(-x)),
    "rsqrt": lambda x: 1 / mpmath.sqrt(x),
    **{name: getattr(mpmath, name) for name in (
        "sin", "cos", "tan", "tanh", "sinh", "cosh", "asin", "acos", "atan", "atan2", "acosh", "atanh", "erf", "erfc",
        "digamma",
    )},
}  # fmt: skip


def errors(kind, got, truth):
    """Each result's error in ulp of the true value."""
    digits, largest = (24, 128) if kind == "float" else (53, 1024)
    found = []
    for value, true in zip(got.tolist(), truth, strict=True):
        if math.isnan(value):
            found.append(INF)
            continue
        infinite = mpmath.mpf(2) ** largest  # An overflow counts as if the exponent went on.
        value = mpmath.sign(value) * infinite if math.isinf(value) else mpmath.mpf(value)
        true = min(max(true, -infinite), infinite)
        exponent = max(mpmath.frexp(true)[1] - digits, SMALLEST[kind])
        found.append(float(mpmath.ldexp(abs(value - true), -exponent)))
    return np.array(found)


def arguments(name, kind, count, seed=0):
    """Random arguments of all sizes and at the function's difficult places, as a list of one or two arrays."""
    rng = np.random.default_rng(seed)
    low, high = SMALLEST[kind], LARGEST[kind]
    top = high * math.log(2)

    def signed(x):
        return x * rng.choice([-1, 1], count)

    every = signed(np.exp2(rng.uniform(low, high, count)))
    tiny = signed(np.exp2(rng.uniform(low, 0, count)))
    unit = rng.uniform(-1, 1, count)
    middle = rng.uniform(-30, 30, count)
    near_one = 1 + unit * np.exp2(rng.uniform(-52, 0, count))
    above_one = 1 + np.exp2(rng.uniform(-52, 5, count))
    ends = signed(1 - np.exp2(rng.uniform(-53, 0, count)))
    exponents = rng.uniform(low * math.log(2) - 2, top + 1, count)
    at_top = top + rng.uniform(-1, 1, count)
    turns = [rng.uniform(-(2**20), 2**20, count), np.rint(rng.uniform(-6e5, 6e5, count)) * (math.pi / 2), middle, tiny]
    thresholds = signed(rng.choice([1 / 4, 1 / 2, 2 / 3, 1, 5 / 4, 4 / 3, 9 / 4, 8, 16, 2**0.5 - 1, 2**0.5 + 1], count))
    thresholds *= 1 + unit * 2.0**-20
    halves = (np.rint(middle * 20) + 0.5) * math.log(2)  # Between two powers of two in the reduction of exp.
    sets = {
        "exp": [exponents, unit, tiny, halves],
        "exp2": [exponents / math.log(2), unit, tiny, np.rint(middle) + 0.5, np.rint(exponents)],
        "expm1": [exponents, unit, tiny, halves, middle],
        "log": [abs(every), near_one, abs(thresholds)], "log2": [abs(every), near_one, abs(thresholds)],
        "log1p": [abs(every), tiny, np.maximum(near_one - 2, -1), unit, abs(thresholds)],
        "sin": turns, "cos": turns, "tan": turns,
        "sinh": [tiny, unit, middle, at_top], "cosh": [tiny, unit, middle, at_top], "tanh": [tiny, unit, middle],
        "logistic": [tiny, unit, middle, exponents],
        "asin": [unit, tiny, ends], "acos": [unit, tiny, ends], "atan": [unit, every, tiny, thresholds],
        "asinh": [unit, every, tiny, middle, signed(2.0**30 * near_one)],
        "acosh": [above_one, np.maximum(abs(every), 1), 2.0**30 * (2 + unit)],
        "atanh": [unit, tiny, ends],
        "erf": [unit, tiny, middle / 5, thresholds], "erfc": [unit, tiny, middle, thresholds],
        "erf_inv": [unit, tiny, ends],
        "lgamma": [abs(unit), abs(middle), abs(every), near_one + 1e-30, 2 * above_one, 2 / above_one, abs(thresholds)],
        "digamma": [abs(unit), abs(middle), abs(every), abs(thresholds)],
        "cbrt": [unit, every], "rsqrt": [abs(unit), abs(every)],
    }  # fmt: skip
    dtype = DTYPES[kind]
    limit = float(np.finfo(dtype).max)

    def rounded(*parts):
        return np.clip(np.concatenate(parts), -limit, limit).astype(dtype)

    if name == "pow":
        x = rounded(abs(every), abs(near_one), above_one, every)
        x[x == 0] = 1
        with np.errstate(divide="ignore", over="ignore"):
            y = np.concatenate([exponents] * 4) / np.log(abs(x.astype(float)))
        y = np.where(x < 0, np.rint(y), y)
        return [x, rounded(np.where(np.isfinite(y), y, 1.0))]
    if name == "atan2":
        y = rounded(unit, every, middle, tiny)
        return [y, rounded(rng.permutation(unit), rng.permutation(every), middle * (2 + unit), rng.permutation(tiny))]
    x = rounded(*sets[name])
    outside = {"lgamma": x <= 0, "rsqrt": x <= 0, "digamma": x <= 0, "log": x <= 0, "log2": x <= 0}.get(
        name, np.zeros(x.size, bool)
    )
    if name in ("atanh", "erf_inv"):
        outside = abs(x) >= 1
    return [x[~outside]]


def worst(name, kind, count, function=None, seed=0):
    """The largest error in ulp beyond the limit, with its arguments: negative if all are within."""
    given = arguments(name, kind, count, seed)
    run = Compiled(function or elementary.FUNCTIONS[name], kind, count=len(given))
    got = run(*given)
    with mpmath.workdps(40):
        truth = [TRUTH[name](*map(mpmath.mpf, point)) for point in zip(*(a.tolist() for a in given), strict=True)]
        error = errors(kind, got, truth)
        size = np.array([float(abs(true)) for true in truth])
    finfo = np.finfo(DTYPES[kind])
    if name in ABSOLUTE:
        unit = np.exp2(np.maximum(np.frexp(size)[1] - finfo.nmant - 1, SMALLEST[kind]).astype(float))
        error = np.where(error * unit <= ABSOLUTE[name] * finfo.eps, 0, error)
    error = error - (size < finfo.tiny)  # A subnormal result may be rounded twice.
    place = int(np.argmax(error))
    return float(error[place]), [a[place] for a in given], got[place]


CASES = [(name, kind) for name in sorted(elementary.FUNCTIONS) for kind in DTYPES]


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_accuracy(name, kind):
    error, given, got = worst(name, kind, 500)
    assert error <= LIMITS.get(name, 4), f"{error} ulp at {given}: {got}"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_accuracy_at_many_arguments(name, kind):
    error, given, got = worst(name, kind, 5000, seed=1)
    assert error <= LIMITS.get(name, 4), f"{error} ulp at {given}: {got}"


@pytest.mark.parametrize("kind", DTYPES)
def test_log2_of_powers_of_two_is_exact(kind):
    exponents = np.arange(SMALLEST[kind], LARGEST[kind])
    np.testing.assert_array_equal(compiled("log2", kind)(np.ldexp(1.0, exponents).astype(DTYPES[kind])), exponents)


@pytest.mark.parametrize("kind", DTYPES)
def test_lgamma_of_negative_arguments(kind):
    x = np.random.default_rng(0).uniform(-20, 0, 400).astype(DTYPES[kind])
    got = compiled("lgamma", kind)(x)
    with mpmath.workdps(40):
        truth = np.array([float(TRUTH["lgamma"](mpmath.mpf(a))) for a in x.tolist()])
    assert np.all(abs(got - truth) <= 64 * np.finfo(DTYPES[kind]).eps * (1 + abs(truth)))


SPECIALS = {
    "exp": [(0, 1), (-0.0, 1), (-INF, 0), (INF, INF), (1e5, INF), (-1e5, 0)],
    "exp2": [(0, 1), (-INF, 0), (INF, INF), (3, 8), (-149, 2.0**-149), (-126, 2.0**-126), (1e30, INF), (-1e30, 0)],
    "expm1": [(0, 0), (-0.0, -0.0), (-INF, -1), (INF, INF), (-1e30, -1)],
    "log": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN)],
    "log2": [(1, 0), (0, -INF), (-0.0, -INF), (INF, INF), (-1, NAN), (-INF, NAN), (8, 3), (0.25, -2)],
    "log1p": [(0, 0), (-0.0, -0.0), (-1, -INF), (INF, INF), (-1.5, NAN), (-INF, NAN)],
    "sin": [(0, 0), (-0.0, -0.0), (INF, NAN), (-INF, NAN), (1e30, NAN)],
    "cos": [(0, 1), (-0.0, 1), (INF, NAN), (-INF, NAN), (-1e30, NAN)],
    "tan": [(0, 0), (-0.0, -0.0), (INF, NAN)],
    "tanh": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1), (1e30, 1)],
    "sinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (1e30, INF)],
    "cosh": [(0, 1), (-0.0, 1), (INF, INF), (-INF, INF), (-1e30, INF)],
    "asin": [(0, 0), (-0.0, -0.0), (1, math.pi / 2), (-1, -math.pi / 2), (1.5, NAN), (-INF, NAN)],
    "acos": [(1, 0), (-1, math.pi), (0, math.pi / 2), (-0.0, math.pi / 2), (1.5, NAN), (INF, NAN)],
    "atan": [(0, 0), (-0.0, -0.0), (INF, math.pi / 2), (-INF, -math.pi / 2), (1, math.pi / 4)],
    "asinh": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF)],
    "acosh": [(1, 0), (INF, INF), (0.5, NAN), (-5, NAN), (-INF, NAN)],
    "atanh": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (INF, NAN), (-INF, NAN)],
    "erf": [(0, 0), (-0.0, -0.0), (INF, 1), (-INF, -1)],
    "erfc": [(0, 1), (INF, 0), (-INF, 2), (1e30, 0)],
    "erf_inv": [(0, 0), (-0.0, -0.0), (1, INF), (-1, -INF), (1.5, NAN), (-2, NAN), (INF, NAN)],
    "lgamma": [(1, 0), (2, 0), (0, INF), (-0.0, INF), (-1, INF), (-7, INF), (INF, INF), (-INF, INF), (-1e30, INF)],
    "digamma": [(0, NAN), (-1, NAN), (-1e30, NAN), (INF, INF), (-INF, NAN)],
    "cbrt": [(0, 0), (-0.0, -0.0), (INF, INF), (-INF, -INF), (27, 3), (-8, -2)],
    "logistic": [(0, 0.5), (INF, 1), (-INF, 0)],
    "rsqrt": [(0, INF), (-0.0, -INF), (INF, 0), (-1, NAN), (0.25, 2)],
    "pow": [
        *(((x, zero), 1) for x in (0, -0.0, 1, -2, INF, -INF, NAN) for zero in (0.0, -0.0)),
        *(((1, y), 1) for y in (2, -INF, INF, NAN)), ((-1, INF), 1), ((-1, -INF), 1), ((-1, NAN), NAN),
        ((-2, 3), -8), ((-2, 2), 4), ((-8, 1 / 3), NAN), ((2, -1), 0.5), ((NAN, 1), NAN), ((2, NAN), NAN),
        ((0, -3), INF), ((-0.0, -3), -INF), ((-0.0, -2), INF), ((-0.0, -2.5), INF), ((0, -INF), INF),
        ((0, 3), 0), ((-0.0, 3), -0.0), ((-0.0, 2), 0), ((-0.0, 2.5), 0), ((-0.0, INF), 0),
        ((0.5, INF), 0), ((0.5, -INF), INF), ((-0.5, INF), 0), ((2, INF), INF), ((2, -INF), 0), ((-2, INF), INF),
        ((INF, 2), INF), ((INF, -2), 0), ((-INF, 3), -INF), ((-INF, 2), INF), ((-INF, 0.5), INF), ((-INF, -3), -0.0),
        ((-INF, -2), 0), ((-INF, -0.5), 0), ((-1, 2.0**30), 1), ((-1, 2.0**23 + 1), -1), ((10, 1e10), INF),
        ((-10, -1e10), 0), ((1e-30, 1e30), 0),
    ],
    "atan2": [
        ((0, 1), 0), ((-0.0, 1), -0.0), ((0, -1), math.pi), ((-0.0, -1), -math.pi), ((0, 0), 0), ((-0.0, 0), -0.0),
        ((0, -0.0), math.pi), ((-0.0, -0.0), -math.pi), ((1, 0), math.pi / 2), ((-1, -0.0), -math.pi / 2),
        ((1, INF), 0), ((-1, INF), -0.0), ((1, -INF), math.pi), ((INF, 1), math.pi / 2), ((-INF, -1), -math.pi / 2),
        ((INF, INF), math.pi / 4), ((-INF, INF), -math.pi / 4), ((INF, -INF), 3 * math.pi / 4),
        ((-INF, -INF), -3 * math.pi / 4), ((0, NAN), NAN), ((NAN, 1), NAN), ((INF, NAN), NAN),
    ],
}  # fmt: skip


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_special_values(name, kind):
    dtype = DTYPES[kind]
    cases = [*SPECIALS[name], *([] if name in TWO_ARGUMENTS else [(NAN, NAN)])]
    given = np.array([x if isinstance(x, tuple) else (x,) for x, _ in cases], dtype).T
    got, expected = compiled(name, kind)(*given), np.array([value for _, value in cases], dtype)
    np.testing.assert_array_max_ulp(got[~np.isnan(expected)], expected[~np.isnan(expected)], 1)
    assert np.array_equal(np.isnan(got), np.isnan(expected)), (given.T[np.isnan(got) != np.isnan(expected)], got)
    signs = ~np.isnan(expected) & (np.signbit(got) != np.signbit(expected))
    assert not signs.any(), (given.T[signs], got[signs])
    whole = np.isin(abs(expected), (0, 1, 2, 3, 4, 8, INF))  # What is exact in C's table.
    np.testing.assert_array_equal(got[whole], expected[whole])


@pytest.mark.parametrize("kind", DTYPES)
@pytest.mark.parametrize("name", ["sin", "cos", "erf", "tanh", "logistic"])
def test_bounded_functions_stay_in_their_bounds(name, kind):
    given = np.concatenate([np.rint(np.linspace(-1e5, 1e5, 40001)) * (math.pi / 2), np.linspace(-20, 20, 40001)])
    assert abs(compiled(name, kind)(given.astype(DTYPES[kind]))).max() <= 1


def any_bits(kind, count):
    """Numbers with random bits: all exponents, infinities and NaN."""
    integers = {"float": np.uint32, "double": np.uint64}[kind]
    bits = np.random.default_rng(5).integers(0, np.iinfo(integers).max, count, integers, endpoint=True)
    return np.concatenate([bits.view(DTYPES[kind]), np.array([0.0, -0.0, INF, -INF, NAN, 1, -1], DTYPES[kind])])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "kind"), CASES)
def test_bits_are_the_same_for_all_widths_and_processors(name, kind):
    given = [np.concatenate([part, any_bits(kind, 200)]) for part in arguments(name, kind, 40)]
    results = [compiled(name, kind, width=width)(*given) for width in (4, 8, 16)]
    results.append(compiled(name, kind, width=4, cpu="x86-64")(*given))  # SSE2 only: each fma is a call.
    for result in results:
        np.testing.assert_array_equal(result, results[0])  # IEEE leaves open which NaN it is.
        number = ~np.isnan(result)
        assert result[number].tobytes() == results[0][number].tobytes()


@pytest.mark.parametrize("kind", DTYPES)
def test_scalars_and_constants_are_accepted(kind):
    """What the lanes share stays a scalar, and meets what has lanes."""
    f = Function(8)
    assert not elementary.exp(f, f.constant(1.0, kind)).wide
    assert not elementary.pow(f, Value("%s", kind, False), Value("%t", kind, False)).wide
    run = Compiled(lambda f, x: elementary.pow(f, f.constant(2.0, kind), x), kind)
    np.testing.assert_array_equal(run(np.arange(-9.0, 9.0)), 2.0 ** np.arange(-9.0, 9.0))


@pytest.mark.parametrize(
    ("name", "kind", "module", "constant"),
    [
        ("log", "float", logarithms, "LOG_TERMS"),
        ("log", "double", logarithms, "ATANH_TERMS"),
        ("erf", "double", error_functions, "ERF_TERMS"),
        ("lgamma", "double", gamma_functions, "LGAMMA_TERMS"),
    ],
)
def test_a_wrong_coefficient_is_noticed(name, kind, module, constant, monkeypatch):
    terms = list(getattr(module, constant))
    terms[1] *= 1 + 1e-5
    monkeypatch.setattr(module, constant, tuple(terms))
    assert worst(name, kind, 100)[0] > LIMITS.get(name, 4)


def test_names_are_those_of_jax():
    lax = pytest.importorskip("jax").lax
    missing = {name for name in elementary.FUNCTIONS if not hasattr(lax, f"{name}_p")}
    assert missing <= {"log2"}  # a primitive since jax 0.11
    assert all(function.__doc__.startswith("Returns ") for function in elementary.FUNCTIONS.values())
