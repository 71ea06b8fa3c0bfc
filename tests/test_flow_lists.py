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


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "lz4", "zstd"])
@pytest.mark.parametrize(("rows", "page"), [(2, "1.0"), (1000, "2.0")])
def test_parquet_is_the_same(
    tmp_path: Path, csv_times: list[float | None], compression: str, rows: int, page: str
) -> None:
    assert None not in csv_times
    types = {"start": [pa.float64(), pa.float32()], "size": [pa.int64(), pa.uint32(), pa.float64(), pa.int32()]}
    types["law"] = [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    for i in range(4):
        table = pa.table({name: pa.array(ROWS[name], of[i % len(of)]) for name, of in types.items()})
        options: dict[str, Any] = {"compression": compression, "data_page_version": page}
        parquet.write_table(table, tmp_path / "flows.parquet", row_group_size=rows, **options)
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
    for kind, name in [(pa.timestamp("ns"), "Timestamp"), (pa.time64("us"), "Time"), (pa.date32(), "Date")]:
        line = refused(good.set_column(0, "start", pa.array([0] * 4, kind)))
        assert f'"start" is of type {name}' in line
        assert "a list has durations since its start, or seconds as numbers" in line
    assert 'row 1: size is "1ms"' in refused(good.set_column(1, "size", pa.array([1] * 4, pa.duration("ms"))))
    assert 'row 1: start is "-1ms"' in refused(good.set_column(0, "start", pa.array([-1] * 4, pa.duration("ms"))))
    assert '"start" is of type' in refused(good.set_column(0, "start", pa.array([0] * 4, pa.decimal128(9, 3))))
    assert "is nested" in refused(good.set_column(0, "start", pa.array([[0.0]] * 4)))
    assert "is compressed by BROTLI, which is not read; write it with zstd," in refused(good, compression="brotli")


@pytest.mark.parametrize(("unit", "per_s"), [("s", 1), ("ms", 10**3), ("us", 10**6), ("ns", 10**9)])
def test_durations_have_their_unit(tmp_path: Path, unit: str, per_s: int) -> None:
    """Parquet has no durations: Arrow's writers store whole numbers, and the unit in the schema beside them."""
    starts = pa.array([2 * per_s, 0, None, per_s], pa.int64())
    table = pa.table({"start": starts.fill_null(0).cast(pa.duration(unit)), "size": [1000] * 4, "law": ["reno"] * 4})
    parquet.write_table(table, tmp_path / "flows.parquet")
    assert scenario("flows.parquet", tmp_path).run().flows.column("start_s") == [2.0, 0.0, 0.0, 1.0]


def test_what_polars_writes_is_read(tmp_path: Path, csv_times: list[float | None]) -> None:
    polars = pytest.importorskip("polars")
    for unit in ["ms", "us", "ns"]:
        frame = polars.DataFrame(ROWS).with_columns(
            start=polars.duration(nanoseconds=(polars.col("start") * 1e9).cast(polars.Int64), time_unit=unit)
        )
        frame.write_parquet(tmp_path / "flows.parquet")
        assert times(scenario("flows.parquet", tmp_path)) == csv_times


@pytest.mark.parametrize("separator", [";", "\t"])
def test_other_separators_are_the_same(tmp_path: Path, csv_times: list[float | None], separator: str) -> None:
    lines = ["\ufeffstart,size,law,note", "0.5,20000,cubic,x", "0,300kB,,", "250ms,1MB,,", '0.25,2000,"cubic",']
    text = "\r\n".join(lines).replace(",", separator)
    (tmp_path / "other.csv").write_text(text, encoding="utf-8")
    refused = scenario("other.csv", tmp_path)
    with pytest.raises(fs.ScenarioError, match=r'line 1: has a column "note"; .*ignore_columns = \["note"\]'):
        refused.run()
    for ignored in ["note", "*"]:
        assert times(refused.set("flows.listed.ignore_columns", [ignored])) == csv_times
    listed = fs.dumbbell("10Mbps", rtt="20ms").flows("reno", list_=tmp_path / "other.csv", ignore_columns=["note"])
    assert times(listed.configure(duration="3s")) == csv_times


@pytest.mark.parametrize("keep", [4, 9, 60, 200, -1, -8, -30])
def test_a_damaged_table_is_refused(tmp_path: Path, keep: int, capfd: pytest.CaptureFixture[str]) -> None:
    parquet.write_table(pa.table(ROWS), tmp_path / "flows.parquet")
    whole = (tmp_path / "flows.parquet").read_bytes()
    (tmp_path / "flows.parquet").write_bytes(whole[:keep])
    with pytest.raises(fs.ScenarioError, match="Parquet"):
        scenario("flows.parquet", tmp_path).run()
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "lz4", "zstd"])
def test_a_byte_that_is_wrong_is_one_error(tmp_path: Path, compression: Any, capfd: pytest.CaptureFixture[str]) -> None:
    table = pa.table({"start": pa.array([0, 1, 2, 3] * 50, pa.duration("ms")), "size": [1000] * 200})
    parquet.write_table(table, tmp_path / "flows.parquet", compression=compression)
    whole = (tmp_path / "flows.parquet").read_bytes()
    for at in range(4, len(whole), max(1, len(whole) // 60)):
        (tmp_path / "flows.parquet").write_bytes(whole[:at] + bytes([whole[at] ^ 0x55]) + whole[at + 1 :])
        try:
            scenario("flows.parquet", tmp_path).resolved()
        except fs.ScenarioError as error:
            assert "\n" not in str(error)  # noqa: PT017
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
