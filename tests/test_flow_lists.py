# SPDX-License-Identifier: Apache-2.0 OR MIT
"""Flows that a file lists: CSV and Parquet are the same, and what is wrong is named with its line or row."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from conftest import Command
from pyarrow import parquet

import flowstamp as fs

ROWS: dict[str, list[Any]] = {
    "start": [0.5, 0.0, 0.25, 0.25],
    "size": [20_000, 300_000, 1_000_000, 2_000],
    "law": ["cubic", None, None, "cubic"],
}


def scenario(name: str, folder: Path) -> fs.Scenario:
    network = fs.dumbbell("10Mbps", rtt="20ms").flows("reno", name="listed", list_=folder / name)
    return network.configure(duration="3s")


def times(of: fs.Scenario) -> list[float | None]:
    return of.run().flows.column("fct_s")


@pytest.fixture
def csv_times(tmp_path: Path) -> list[float | None]:
    lines = ["start,size,law", "0.5,20000,cubic", "0,300kB,", "250ms,1MB,", "0.25,2000,cubic"]
    (tmp_path / "flows.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return times(scenario("flows.csv", tmp_path))


@pytest.mark.parametrize("compression", ["none", "snappy"])
@pytest.mark.parametrize("rows", [2, 1000])
def test_parquet_is_the_same(tmp_path: Path, csv_times: list[float | None], compression: str, rows: int) -> None:
    assert None not in csv_times
    types = {"start": [pa.float64(), pa.float32()], "size": [pa.int64(), pa.uint32(), pa.float64(), pa.int32()]}
    types["law"] = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    for i in range(4):
        table = pa.table({name: pa.array(ROWS[name], of[i % len(of)]) for name, of in types.items()})
        parquet.write_table(table, tmp_path / "flows.parquet", compression=compression, row_group_size=rows)
        assert times(scenario("flows.parquet", tmp_path)) == csv_times


def test_a_bad_table_is_named(tmp_path: Path) -> None:
    def refused(table: pa.Table, **options: Any) -> str:
        parquet.write_table(table, tmp_path / "flows.parquet", **options)
        with pytest.raises(fs.ScenarioError) as caught:
            scenario("flows.parquet", tmp_path).run()
        assert "\n" not in str(caught.value)
        return str(caught.value)

    good = pa.table(ROWS)
    assert 'row 3: size is "0"' in refused(good.set_column(1, "size", pa.array([1, 2, 0, 4])))
    assert 'column "colour"' in refused(good.append_column("colour", good["law"]))
    assert 'row 2: size is ""' in refused(good.set_column(1, "size", pa.array([1, None, 3, 4])))
    assert '"start" is of type Timestamp' in refused(good.set_column(0, "start", pa.array([0] * 4, pa.timestamp("ns"))))
    assert '"start" is of type' in refused(good.set_column(0, "start", pa.array([0] * 4, pa.decimal128(9, 3))))
    assert "is nested" in refused(good.set_column(0, "start", pa.array([[0.0]] * 4)))
    assert "write it with Snappy or uncompressed, or as CSV" in refused(good, compression="zstd")


@pytest.mark.parametrize("keep", [4, 9, 60, 200, -1, -8, -30])
def test_a_damaged_table_is_refused(tmp_path: Path, keep: int, capfd: pytest.CaptureFixture[str]) -> None:
    parquet.write_table(pa.table(ROWS), tmp_path / "flows.parquet")
    whole = (tmp_path / "flows.parquet").read_bytes()
    (tmp_path / "flows.parquet").write_bytes(whole[:keep])
    with pytest.raises(fs.ScenarioError, match="Parquet"):
        scenario("flows.parquet", tmp_path).run()
    assert capfd.readouterr().err == ""


def test_the_command_takes_another_list(flowstamp: Command, tmp_path: Path) -> None:
    (tmp_path / "lists").mkdir()
    (tmp_path / "lists/one.csv").write_text("start,size\n0,1000\n", encoding="utf-8")
    (tmp_path / "two.csv").write_text("start,size\n0,1000\n0,2000\n1,x\n", encoding="utf-8")
    (tmp_path / "lists/scenario.toml").write_text(
        'duration = "1s"\n[dumbbell]\nrate = "10Mbps"\nrtt = "20ms"\n'
        '[[flows]]\nname = "listed"\nlaw = "reno"\nlist = "one.csv"\n',
        encoding="utf-8",
    )
    assert flowstamp("run", "lists/scenario.toml").returncode == 0
    done = flowstamp("run", "lists/scenario.toml", "--set", "flows.listed.list=two.csv")
    assert done.returncode == 2
    assert 'two.csv": line 4: size is "x"' in done.stderr
    assert done.stderr.count("\n") == 1


def test_starts_are_listed_one_by_one() -> None:
    flows = fs.dumbbell("10Mbps", rtt="20ms").flows("reno", 3, size="10kB", start=["300ms", "0s", "1s"]).run("2s").flows
    assert flows.column("start_s") == [0.3, 0.0, 1.0]
    with pytest.raises(fs.ScenarioError, match="has 2 entries; it needs one for each of 3 flows"):
        fs.dumbbell("10Mbps", rtt="20ms").flows("reno", 3, start=["300ms", "0s"]).run("2s")
