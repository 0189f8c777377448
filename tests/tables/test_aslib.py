"""Scenarios of ASlib as tables: runs that end, time out or repeat, and what a bad one says."""

import numpy as np
import pytest

import jaxbandit as jb

# ASlib scenarios

RUNS = """% runs of two solvers
@RELATION ALGORITHM_RUNS

@ATTRIBUTE instance_id STRING
@ATTRIBUTE repetition NUMERIC
@attribute algorithm string
@ATTRIBUTE runtime NUMERIC
@ATTRIBUTE memory NUMERIC
@ATTRIBUTE runstatus {ok, timeout, memout, not_applicable, crash, other}

@DATA
'b, 1.cnf',1,minisat,2.5,7,ok
'b, 1.cnf',1,kissat,100.0,7,timeout
a.cnf,1,minisat,4,7,ok
a.cnf,2,minisat,8,7,ok
a.cnf,1,kissat,1,7,ok
a.cnf,2,kissat,?,7,crash
"it\\"s.cnf",1,kissat,100,7,ok
"it\\"s.cnf",1,minisat,100.5,7,OK
"""
ABOUT = """scenario_id: SAT-TEST
performance_measures:
  - runtime
maximize:
  - false
performance_type:
  - runtime
algorithm_cutoff_time: 100  # seconds
metainfo_algorithms:
  minisat:
    configuration: ''
    algorithm_cutoff_time: 7
"""


def scenario(folder, runs=RUNS, about=ABOUT):
    folder = folder / "SAT-TEST"
    folder.mkdir(exist_ok=True)
    (folder / "algorithm_runs.arff").write_text(runs)
    (folder / "description.txt").write_text(about)
    return folder


def test_a_scenario_with_time_outs_and_repetitions(tmp_path):
    table = jb.read_table(scenario(tmp_path))
    assert table.arms == ("minisat", "kissat")
    assert table.name == "SAT-TEST"
    assert not table.rewards
    # A time-out, a crash and a run past the cutoff count 1000; repetitions are averaged.
    np.testing.assert_array_equal(table.losses, [[2.5, 1000.0], [6.0, 500.5], [1000.0, 100.0]])


def test_a_scenario_of_quality_keeps_its_numbers_and_direction(tmp_path):
    about = (
        "performance_measures: [quality, time]\nmaximize: [true, false]\nperformance_type: [solution_quality, time]\n"
    )
    runs = RUNS.replace("runtime", "quality").replace("?", "0.5")
    table = jb.read_table(scenario(tmp_path, runs, about))
    assert table.rewards
    assert table.replay().rewards
    np.testing.assert_array_equal(table.losses, [[2.5, 100.0], [6.0, 0.75], [100.5, 100.0]])


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (",1,7,ok", ",fast,7,ok", "line 16: 'fast' is not a number"),
        (",1,7,ok", ",1,7", "line 16: 5 entries, but there are 6 attributes"),
        ("'b, 1.cnf',1,kissat", "'b,1,kissat", "line 13: entries with wrong quotes"),
        ("runstatus", "status", "lacks the attribute runstatus; it has instance_id, repetition"),
        ("a.cnf,1,kissat,1,7,ok\na.cnf,2,kissat,?,7,crash\n", "", r"row 2 of 3, column 2 of 2 \('kissat'\)"),
        (RUNS[RUNS.index("'b, 1") :], "", "holds no runs; put them after a line @DATA"),
    ],
)
def test_bad_runs(old, new, message, tmp_path):
    assert old in RUNS
    with pytest.raises(ValueError, match=message):
        jb.read_table(scenario(tmp_path, RUNS.replace(old, new)))


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        (
            "algorithm_cutoff_time: 100",
            "algorithm_cutoff_time: ?",
            "line 13: the run did not end, and description.txt has no algorithm_cut",
        ),
        ("algorithm_cutoff_time: 100", "algorithm_cutoff_time: long", "algorithm_cutoff_time is 'long', not a number"),
        ("- runtime\nmax", "- speed\nmax", "names the measure 'speed', but .* has runtime, memory"),
    ],
)
def test_bad_descriptions(old, new, message, tmp_path):
    assert old in ABOUT
    with pytest.raises(ValueError, match=message):
        jb.read_table(scenario(tmp_path, about=ABOUT.replace(old, new)))


def test_runs_that_all_ended_need_no_description(tmp_path):
    folder = scenario(tmp_path, "".join(line for line in RUNS.splitlines(True) if "timeout" not in line or "{" in line))
    (folder / "algorithm_runs.arff").write_text(RUNS.replace("timeout\n", "ok\n").replace("?,7,crash", "3,7,ok"))
    (folder / "description.txt").unlink()
    np.testing.assert_array_equal(jb.read_table(folder).losses, [[2.5, 100.0], [6.0, 2.0], [100.5, 100.0]])
