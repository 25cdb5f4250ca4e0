"""Small files that would take all memory or time: each fails alone, with a sentence that says why.

Every attack has a control: the same file below the limit, or of a smaller size, is used.
"""

import gc
import io
import json
import os
import re
import tarfile
import tracemalloc
import zipfile
from itertools import pairwise

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from click.testing import CliRunner

from evalkit import trajectories
from evalkit.cli import main
from evalkit.failures.rules import cause_of, claims_success
from evalkit.io import SourceError, decode_json
from evalkit.io.paths import MOST_BYTES, LimitError
from evalkit.kinds import load
from evalkit.kinds.errors import is_error
from evalkit.kinds.findings import VARIANT
from evalkit.kinds.transcript import read_log
from evalkit.mindcraft.transcript import transcript as mindcraft_transcript
from evalkit.trajectories.chat import Message
from evalkit.trajectories.formats import table_of_runs
from evalkit.trajectories.transcript import answer_in_order, transcript, turns_of
from tests.trajectories import folders as make

LIMIT = 200_000
HEADER = {"eval": {"task": "t", "model": "m", "run_id": "r"}}
GOOD = "model,task,score\nm,a,1\nm,b,0\nn,a,0\n"


def parquet(rows, text, **more):
    repeated = pa.DictionaryArray.from_arrays(pa.array([0] * rows), [text])
    columns = {"task": list(map(str, range(rows))), "score": [1.0] * rows, "model": ["m"] * rows, "note": repeated}
    buffer = io.BytesIO()
    pq.write_table(pa.table({**columns, **{name: pa.array(cells) for name, cells in more.items()}}), buffer)
    return buffer.getvalue()


def json_texts(rows, text, *, in_lists=False):
    """Return a Parquet file with texts of Arrow's JSON type that share bytes, and with ids of its UUID type."""
    shared = pa.DictionaryArray.from_arrays(pa.array([0] * rows), [text]).cast(pa.string())
    columns = {
        "task": pa.array([number.to_bytes(16, "big") for number in range(rows)], pa.uuid()),
        "score": [1.0] * rows,
        "model": ["m"] * rows,
        "note": pa.ExtensionArray.from_storage(pa.json_(), shared),
    }
    if in_lists:
        columns["note"] = pa.ListArray.from_arrays(list(range(rows + 1)), columns["note"])
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, store_schema=False)
    return buffer.getvalue()


def false_rows(rows, columns):
    """Return a Parquet file of at most one row that states another number of rows."""
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="none", store_schema=False)
    data = buffer.getvalue()
    size = int.from_bytes(data[-8:-4], "little")
    stated = b"\x16\x02" if columns else b"\x16\x00"
    footer = data[-8 - size : -8].replace(stated, b"\x16" + thrift_integer(rows))
    return data[: -8 - size] + footer + len(footer).to_bytes(4, "little") + b"PAR1"


def shared_beginnings(rows, text):
    """Return a Parquet file whose texts repeat the one before, in an encoding that stores it once."""
    columns = {"task": list(map(str, range(rows))), "score": [1.0] * rows, "model": ["m"] * rows, "note": [text] * rows}
    buffer, options = io.BytesIO(), {"column_encoding": {"note": "DELTA_BYTE_ARRAY"}, "compression": "zstd"}
    pq.write_table(pa.table(columns), buffer, use_dictionary=False, **options)
    return buffer.getvalue()


def false_sizes(page):
    """Return a Parquet file with one page of some size, whose metadata state another."""
    rows = pa.table({"task": ["t"], "score": [1.0], "model": ["m"], "note": ["x" * page]})
    buffer = io.BytesIO()
    pq.write_table(rows, buffer, compression="zstd", use_dictionary=False, write_statistics=False)
    row_group, data = pq.read_metadata(buffer).row_group(0), buffer.getvalue()
    for size in (row_group.column(3).total_uncompressed_size, row_group.total_byte_size):
        start, _, end = data.rpartition(thrift_integer(size))
        data = start + thrift_integer(8_000) + end
    return data


def thrift_integer(number):
    """Return a number as Parquet files contain it, in three bytes."""
    return bytes([128 | 2 * number & 127, 128 | number >> 6 & 127, number >> 13])


def pages(*, endless=False, shared=False):
    """Return a Parquet file, in which a header has an integer without an end, or two columns are the same bytes."""
    columns = {"task": ["t" * 9_000], "score": [1.0], "model": ["m"], "note": ["x" * 12_000], "twin": ["x" * 12_000]}
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, compression="none", use_dictionary=False, write_statistics=False)
    row_group, data = pq.read_metadata(buffer).row_group(0), buffer.getvalue()
    note, twin = (row_group.column(at).data_page_offset for at in (3, 4))
    if endless:
        data = data[:note] + b"\x15" + b"\xff" * 9_000 + data[note + 9_001 :]
    if shared:
        footer = data[twin + row_group.column(4).total_compressed_size :]
        data = data[:twin] + footer.replace(thrift_integer(twin), thrift_integer(note))
    return data


def archive(**members):
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as written:
        for name, value in members.items():
            text = value if isinstance(value, str) else json.dumps(value)
            written.writestr(name.replace("__", "/") + ".json", text)
    return buffer.getvalue()


def overlapping(count):
    """Return an archive whose directory names one member many times."""
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as written:
        written.writestr("header.json", json.dumps(HEADER))
        written.writestr("samples/1_epoch_1.json", json.dumps({"id": 1, "epoch": 1}))
        for number in range(2, count + 1):
            twin = zipfile.ZipInfo(f"samples/{number}_epoch_1.json")
            sample = written.getinfo("samples/1_epoch_1.json")
            for name in ("header_offset", "compress_type", "CRC", "compress_size", "file_size"):
                setattr(twin, name, getattr(sample, name))
            written.filelist.append(twin)
    return buffer.getvalue()


def session(record):
    """Return a session of Claude Code with one more record."""
    records = [make.claude("s", 1, "hi"), make.claude("s", 2, make.answer("a", "yo")), record]
    return "\n".join(map(json.dumps, records)).encode()


def names(rows):
    """Return JSON lines that each have a name of their own."""
    return "\n".join(f'{{"task": "t{n}", "score": 1, "model": "m", "n{n}": 1}}' for n in range(rows)).encode()


NESTED = [{}] * 900
SAMPLES = {f"samples__{number}_epoch_1": {"id": number, "epoch": 1, "x": "x" * 30_000} for number in range(10)}
NO_FILE = "OSError: neither a regular file nor a link to one in the archive"
LARGE = "more than the limit of 200000"
FILES = {  # name: the attack, the control, and what is said of the attack
    "text.parquet": (parquet(50, "x" * 10_000), parquet(5, "x" * 10_000), LARGE),
    "delta.parquet": (shared_beginnings(50, "x" * 10_000), shared_beginnings(5, "x" * 10_000), LARGE),
    "fixed.parquet": (
        parquet(50, "x", f=pa.array([b"x" * 10_000] * 50, pa.binary(10_000))),
        parquet(5, "x", f=pa.array([b"x" * 10_000] * 5, pa.binary(10_000))),
        LARGE,
    ),
    "json.parquet": (json_texts(50, "x" * 10_000), json_texts(5, "x" * 10_000), LARGE),
    "jsons.parquet": (
        json_texts(50, "x" * 10_000, in_lists=True),
        json_texts(5, "x" * 10_000, in_lists=True),
        LARGE,
    ),
    "messages.parquet": (false_rows(50_000, {"messages": ["hi"]}), parquet(9, "x"), "more than the limit"),
    "empty.parquet": (false_rows(50_000, {}), parquet(9, "x"), "more than the limit"),
    "page.parquet": (false_sizes(300_000), false_sizes(100_000), LARGE),
    "values.json": (
        b'{"task": "t", "score": 1, "model": "m", "note": [' + b"{}," * 9_000 + b"1]}",
        b'{"task": "t", "score": 1, "model": "m", "note": [' + b"{}," * 900 + b"1]}",
        LARGE,
    ),
    "rows.parquet": (parquet(3_000, "x"), parquet(90, "x"), LARGE),
    "nested.parquet": (parquet(1, "x", l=[[0] * 9_000]), parquet(1, "x", l=[[0] * 900]), LARGE),
    "endless.parquet": (pages(endless=True), pages(), "the header of a page is broken"),
    "shared.parquet": (pages(shared=True), pages(), "columns share bytes"),
    "list.parquet": (parquet(9, "x", l=[["y" * 3_000] * 9] * 9), parquet(9, "x", l=[["y" * 300] * 9] * 9), LARGE),
    "map.parquet": (parquet(9, "x", s=[{"a": "y" * 30_000}] * 9), parquet(9, "x", s=[{"a": "y" * 30}] * 9), LARGE),
    "wide.csv": (
        b"task,score,model," + b",".join(b"c%d" % n for n in range(500)) + b"\n" + b"t,1,m\n" * 50,
        b"task,score,model," + b",".join(b"c%d" % n for n in range(500)) + b"\n" + b"t,1,m\n",
        LARGE,
    ),
    "rows.csv": (b"task,score,model\n" + b"t,1,m\n" * 300, b"task,score,model\n" + b"t,1,m\n" * 30, LARGE),
    "values.jsonl": (
        (b'{"task": "t", "score": 1, "model": "m", "note": [' + b"{}," * 900 + b"1]}\n") * 9,
        b'{"task": "t", "score": 1, "model": "m", "note": [' + b"{}," * 900 + b"1]}\n",
        LARGE,
    ),
    "names.jsonl": (names(120), names(20), LARGE),
    "names.json": (b"[%s]" % names(120).replace(b"\n", b","), b"[%s]" % names(20).replace(b"\n", b","), LARGE),
    "session.jsonl": (session({"x": NESTED * 9}), session({"x": NESTED}), LARGE),
    "log.json": (
        json.dumps(HEADER | {"results": NESTED * 9, "samples": []}).encode(),
        json.dumps(HEADER | {"results": NESTED, "samples": []}).encode(),
        LARGE,
    ),
    "values.eval": (
        archive(header=HEADER | {"results": NESTED * 9}),
        archive(header=HEADER | {"results": NESTED}),
        LARGE,
    ),
    "replaced.eval": (
        archive(header=HEADER, samples__1_epoch_1=f'{{"id": 1, "metadata": {json.dumps(NESTED * 9)}, "metadata": 0}}'),
        archive(header=HEADER, samples__1_epoch_1={"id": 1, "metadata": NESTED}),
        LARGE,
    ),
    "sum.eval": (
        archive(header=HEADER, **{name: one | {"x": "", "metadata": {"x": NESTED}} for name, one in SAMPLES.items()}),
        archive(header=HEADER, samples__1_epoch_1={"id": 1, "metadata": {"x": NESTED}}),
        LARGE,
    ),
    "member.eval": (archive(header=HEADER | {"x": "x" * 300_000}), archive(header=HEADER | {"x": "x" * 100}), LARGE),
    "members.eval": (archive(header=HEADER, **SAMPLES), archive(header=HEADER, samples__1_epoch_1={"id": 1}), LARGE),
    "directory.eval": (
        archive(header=HEADER, samples__1_epoch_1={"id": 1}, **{f"n{number}": "" for number in range(500)}),
        archive(header=HEADER, samples__1_epoch_1={"id": 1}, **{f"n{number}": "" for number in range(200)}),
        LARGE,
    ),
    "overlap.eval": (overlapping(3), overlapping(1), "overlaps another member"),
}


def ledger_of(folder):
    ledger = load(folder, "trajectories").ledger
    return ledger.set_index(ledger["source"].map(os.path.basename))


@pytest.fixture(scope="module")
def ledgers(tmp_path_factory):
    """Return the ledgers of a folder of all attacks, of one of all controls, and of the attacks with a higher limit."""
    folder = tmp_path_factory.mktemp("files")
    for at, below in enumerate(("attacks", "controls")):
        (folder / below).mkdir()
        (folder / below / "good.csv").write_text(GOOD)
        for name, contents in FILES.items():
            (folder / below / name).write_bytes(contents[at])
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("EVALKIT_CACHE", str(folder / "cache"))
        patch.setenv(MOST_BYTES, str(LIMIT))
        limited = [ledger_of(folder / "attacks"), ledger_of(folder / "controls")]
        patch.setenv(MOST_BYTES, "1e9")
        return [*limited, ledger_of(folder / "attacks")]


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_decodes_to_too_much_fails_alone_and_is_read_with_a_higher_limit(ledgers, name):
    attack, _, said = FILES[name]
    assert len(attack) < LIMIT / 2
    attacks, controls, with_higher_limit = (ledger.loc[name] for ledger in ledgers)
    assert attacks["status"] == "failed"
    assert said in attacks["reason"]
    assert controls["status"] == "used"
    assert [ledger.loc["good.csv", "status"] for ledger in ledgers] == ["used"] * 3
    if said == LARGE:
        assert with_higher_limit["status"] == "used"


def test_members_that_overlap_make_an_archive_of_logs_unreadable(tmp_path):
    (tmp_path / "logs.zip").write_bytes(overlapping(3))
    with pytest.raises(SourceError, match=r"logs\.zip.*overlaps another member"):
        trajectories.load(str(tmp_path / "logs.zip"))


def _trajectory(name, refs, **more):
    ref = [{"trajectory_path": ref} for ref in refs]
    step = {
        "source": "agent",
        "message": f"said in {name}",
        "observation": {"results": [{"subagent_trajectory_ref": ref}]},
    }
    about = {"schema_version": "ATIF-v1.4", "session_id": name, "agent": {"name": "a", "version": "1"}}
    return {**about, "steps": [step], **more}


def test_a_trajectory_that_names_itself_or_a_ring_is_shown_once(tmp_path):
    names = [f"{number}.json" for number in range(12)]
    for name in names:
        (tmp_path / name).write_text(json.dumps(_trajectory(name, names * 12, continued_trajectory_ref=name)))
    shown = transcript([str(tmp_path / "0.json")], read_log).turns
    said = [turn.text for turn in shown]
    assert said[0] == "said in 0.json"
    assert len(said) == len(set(said)) > 1


def test_subagents_within_a_file_are_shown_once_each(tmp_path):
    document = _trajectory("leaf", [])
    for depth in range(8):
        refs = [{"trajectory_id": document["session_id"]}] * 12
        above = _trajectory(f"level {depth}", [], subagent_trajectories=[document])
        above["steps"][0]["observation"]["results"][0]["subagent_trajectory_ref"] = refs
        document = above
    (tmp_path / "a.json").write_text(json.dumps(document))
    said = [turn.text for turn in transcript([str(tmp_path / "a.json")], read_log).turns]
    assert len(said) == len(set(said)) == 9


def test_a_table_of_many_columns_names_the_one_that_stands_twice():
    columns = ["task", "score", "model", *(f"c{number}" for number in range(10_000)), "c7"]
    data = f"{','.join(columns)}\n{','.join('1' * len(columns))}\n".encode()
    from evalkit.trajectories.formats.table_of_runs import read_rows

    with pytest.raises(ValueError, match="several columns are named 'c7'"):
        read_rows(data)
    assert len(read_rows(data.replace(b",c7\n", b",d\n"))[0]) == 1


@pytest.mark.parametrize("name", ["long.jsonl", "long.csv", "long.json"])
def test_a_line_that_is_too_long_fails_alone_and_is_read_with_a_higher_limit(tmp_path, monkeypatch, name):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    row = {"model": "m", "task": "c", "score": 1, "note": "x" * 2 * LIMIT}
    text = f"{json.dumps(row)}\n"
    if name.endswith(".csv"):
        text = f"{','.join(row)}\n{','.join(map(str, row.values()))}\n"
    (tmp_path / name).write_text(text)
    (tmp_path / "a.csv").write_text(GOOD)
    for limit, status in ((3 * LIMIT, "failed"), (9 * LIMIT, "used")):
        monkeypatch.setenv(MOST_BYTES, str(limit))
        assert load(tmp_path, "trajectories").ledger["status"].tolist() == ["used", status]


def test_the_limit_that_a_message_names_reads_the_file(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    monkeypatch.setenv(MOST_BYTES, str(5 * LIMIT))
    long = make.claude("s", 2, "x" * 2 * LIMIT)
    make.lines(tmp_path / "s.jsonl", make.claude("s", 1, "hi"), long, make.claude("s", 3, "y"))
    (tmp_path / "a.csv").write_text(GOOD)
    reason = load(tmp_path, "trajectories").ledger["reason"].iloc[1]
    monkeypatch.setenv(MOST_BYTES, re.search(rf"{MOST_BYTES}=(\d+)", reason)[1])
    assert load(tmp_path, "trajectories").ledger["status"].tolist() == ["used", "used"]


def test_lines_are_measured_before_a_table_is_decoded(monkeypatch):
    monkeypatch.setenv(MOST_BYTES, str(LIMIT))
    monkeypatch.setattr(table_of_runs, "_text", None)  # which decodes
    for before, after in (("", ""), (GOOD, ""), ("", GOOD), (GOOD * 5_000, GOOD)):
        with pytest.raises(LimitError, match=LARGE):
            table_of_runs.read_rows(f"{before}{'x' * LIMIT}\n{after}".encode())


def test_the_page_of_a_run_of_many_turns_is_bounded(tmp_path):
    sizes = []
    for count in (2_000, 10_000):
        turns = [{"role": "user", "content": f"turn {number} {'x' * 50}"} for number in range(count)]
        (tmp_path / "runs.json").write_text(json.dumps([{"model": "m", "task": "a", "score": 1, "messages": turns}]))
        result = CliRunner().invoke(main, ["view", str(tmp_path / "runs.json"), "-o", str(tmp_path / "out")])
        assert result.exit_code == 0, result.output
        (page,) = (tmp_path / "out/runs").glob("*.html")
        sizes.append(page.stat().st_size)
    assert sizes[1] < min(1.1 * sizes[0], 10**6)


def test_events_of_a_sample_which_are_passed_over_do_not_count(tmp_path, monkeypatch):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    monkeypatch.setenv(MOST_BYTES, str(LIMIT))
    sample = {"id": 1, "messages": [{"role": "user", "content": "hi"}], "events": NESTED * 9}
    (tmp_path / "a.eval").write_bytes(archive(header=HEADER, samples__1_epoch_1=sample))
    assert trajectories.load(tmp_path).messages["text"].tolist() == ["hi"]


@pytest.mark.parametrize("name", ["nested.parquet", "page.parquet"])
def test_the_values_of_pages_are_counted_before_they_are_unpacked(monkeypatch, name):
    monkeypatch.setenv(MOST_BYTES, str(LIMIT))
    monkeypatch.setattr(table_of_runs.pq, "ParquetFile", None)  # which unpacks
    with pytest.raises(LimitError, match=LARGE):
        table_of_runs.read_rows(FILES[name][0])


@pytest.mark.parametrize("size", [100_000, 300_000])
def test_the_sizes_of_pages_are_read_before_they_are_unpacked(size):
    data = false_sizes(size)
    chunk = pq.read_metadata(io.BytesIO(data)).row_group(0).column(3)
    assert size <= sum(page.size for page in table_of_runs._pages(data, chunk)) < size + 100


@pytest.mark.parametrize("name", ["text.parquet", "json.parquet", "jsons.parquet"])
def test_texts_that_share_bytes_are_counted_before_they_are_copied(monkeypatch, name):
    sizes = []
    monkeypatch.setattr(table_of_runs, "_decoded_size", lambda values: sizes.append(values.nbytes) or 0)
    (attack, _, _), rows = FILES[name], 50
    assert len(table_of_runs.read_rows(attack)[0]) == rows
    assert 10_000 < sum(sizes) < rows / 10 * 10_000


SIZE = 150_000
REPAIRED = {  # documents with a repaired defect, and with a character because of which each one takes four bytes
    "one NaN": '["' + "x" * SIZE + '😀", NaN]',
    "many NaN": "[" + "NaN, " * (SIZE // 5) + '"😀"]',
    "a surrogate": '["\\ude00' + "x" * SIZE + '😀"]',
    "surrogates": '["' + "\\ud83d" * (SIZE // 6) + '😀"]',
    "both, after escapes": '["' + "\\n" * (SIZE // 2) + '\\ud83d😀", -Infinity]',
}


def memory_of(data):
    """Return the memory that decoding a document takes, and what is left of it afterwards, in bytes per byte."""
    gc.disable()
    tracemalloc.start()
    try:
        decode_json(data)
        left, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
        gc.enable()
    return most / len(data), left / len(data)


@pytest.mark.parametrize("what", REPAIRED)
def test_a_document_that_is_repaired_takes_little_more_memory_than_another(what):
    whole, _ = memory_of(f'["{"x" * SIZE}😀"]'.encode())
    assert 4 < whole < 6
    most, left = memory_of(REPAIRED[what].encode())
    assert most < 2 * whole
    assert left < 0.1


@pytest.mark.parametrize("columns", [{}, {"messages": ["hi"]}])
def test_a_table_without_a_column_to_read_has_no_rows(columns):
    assert table_of_runs.read_rows(false_rows(9_000, columns), messages=False)[0] == []


def test_ids_of_the_type_uuid_are_read():
    rows, _ = table_of_runs.read_rows(json_texts(2, "{}"))
    assert [str(row["task"]) for row in rows] == [f"00000000-0000-0000-0000-00000000000{n}" for n in range(2)]


WRITTEN = {  # how a Parquet file may be written
    "plain": {"use_dictionary": False, "compression": "none"},
    "dictionary": {"use_dictionary": True},
    "row groups": {"row_group_size": 7, "compression": "gzip"},
    "small pages": {"data_page_size": 64, "write_batch_size": 8, "compression": "zstd", "write_page_index": True},
    "second version": {"data_page_version": "2.0", "compression": "brotli", "write_page_checksum": True},
    "delta encodings": {
        "use_dictionary": False,
        "column_encoding": {
            "task": "DELTA_BYTE_ARRAY",
            "note": "DELTA_LENGTH_BYTE_ARRAY",
            "score": "BYTE_STREAM_SPLIT",
        },
    },
}


@pytest.mark.parametrize("options", WRITTEN.values(), ids=WRITTEN)
def test_parquet_files_are_read_however_they_are_written(options):
    count = 100
    columns = {
        "task": [f"t{number}" for number in range(count)],
        "score": [number / count for number in range(count)],
        "note": [None if number % 3 else "é" * number for number in range(count)],
        "list": [list(range(number % 4)) for number in range(count)],
        "map": [{"a": str(number)} for number in range(count)],
    }
    buffer = io.BytesIO()
    pq.write_table(pa.table(columns), buffer, **options)
    data, stored = buffer.getvalue(), pq.read_metadata(buffer)
    assert table_of_runs.read_rows(data)[0] == [
        dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)
    ]
    for group in range(stored.num_row_groups):
        for chunk in map(stored.row_group(group).column, range(stored.num_columns)):
            pages = list(table_of_runs._pages(data, chunk))
            headers = chunk.total_uncompressed_size - sum(page.size for page in pages)  # the column's own size has them
            assert 10 * len(pages) <= headers <= 500 * len(pages)
            assert sum(page.values for page in pages) == chunk.num_values


@pytest.mark.parametrize("kind", [tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.SYMTYPE])
def test_a_member_of_an_archive_that_is_no_file_fails_alone(tmp_path, monkeypatch, kind):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    with tarfile.open(tmp_path / "logs.tar", "w") as written:
        good, odd = tarfile.TarInfo("good.csv"), tarfile.TarInfo("odd.csv")
        good.size, odd.type, odd.linkname = len(GOOD), kind, "/etc/passwd"
        written.addfile(good, io.BytesIO(GOOD.encode()))
        written.addfile(odd)
    ledger = load(str(tmp_path / "logs.tar"), "trajectories").ledger
    assert ledger["status"].tolist() == ["used", "failed"]
    assert ledger["reason"].tolist()[1] == NO_FILE


def tar(*members):
    """Return an archive with the table `good.csv` and these members: names, types, contents and stated sizes."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as written:
        for name, kind, data, *size in (("good.csv", tarfile.REGTYPE, GOOD.encode()), *members):
            member = tarfile.TarInfo(name)
            member.type, member.size = kind, len(data)
            if kind in (tarfile.SYMTYPE, tarfile.LNKTYPE):
                member.linkname = data.decode()
            if size or member.linkname:
                member.size = sum(size)
                written.fileobj.write(member.tobuf(tarfile.GNU_FORMAT))
            else:
                written.addfile(member, io.BytesIO(data))
    return buffer.getvalue()


def described(data):
    """Return the members of a table `b.csv` after a pax header with this content."""
    return [("x", tarfile.XHDTYPE, data), ("b.csv", tarfile.REGTYPE, GOOD.encode())]


def linked(count):
    """Return a chain of links, of which only the last names a file."""
    names = [f"{number}.csv" for number in range(count)]
    return [(name, tarfile.SYMTYPE, target.encode()) for name, target in pairwise([*names, "good.csv"])]


CHECKS_RECORDS = hasattr(tarfile, "_header_length_prefix_re")  # true for `tarfile` of later versions of Python 3.11

TARS = {  # archives for which `tarfile` needs endless time or memory: the number of tables that are read, or a reason
    "a negative size": (tar(("b.csv", tarfile.REGTYPE, b"", -1024)), "states a size of -1024 bytes"),
    "a negative size in a header": (tar(*described(b"14 size=-1536\n")), "states a size of -1536 bytes"),
    "digits": (tar(*described(b"7" * 500_000)), "states a size of 500000 bytes"),
    "digits in a record": (
        tar(*described(b"500007 comment=" + b"7" * 499_991 + b"\n")),
        "states a size of 500007 bytes",
    ),
    "records within records": (tar(*described(b"2 " * 200_000 + b"x=")), "states a size of 400002 bytes"),
    "headers for all members": (
        tar(*[("x", tarfile.XGLTYPE, b"2 " * 2_000 + b"%d=" % n) for n in range(15)], *described(b"")),
        "damaged: invalid header" if CHECKS_RECORDS else 2,
    ),
    "headers of headers": (tar(*described(b"8 a=bcd\n")[:1] * 3_000), "nested too deep"),
    "a chain of links": (tar(*linked(1_000)), 2),
    "a link to itself": (tar(("b.csv", tarfile.LNKTYPE, b"b.csv")), 1),
    "a sparse file": (tar(*described(b"22 GNU.sparse.major=1\n22 GNU.sparse.minor=0\n")), "invalid literal"),
    "a line break at the end": (tar() + b"\n", 1),
    "none": (tar(*described(b"18 path=other.csv\n"), ("c.csv", tarfile.SYMTYPE, b"a/../other.csv")), 3),
}


@pytest.mark.parametrize("what", TARS)
def test_a_tar_archive_with_crafted_headers_is_read_or_refused_soon(tmp_path, monkeypatch, what):
    monkeypatch.setenv("EVALKIT_CACHE", "off")
    data, expected = TARS[what]
    (tmp_path / "logs.tar").write_bytes(data)
    if isinstance(expected, str):
        with pytest.raises(SourceError, match=rf"logs\.tar!: .*{expected}"):
            load(str(tmp_path / "logs.tar"), "trajectories")
    else:
        ledger = load(str(tmp_path / "logs.tar"), "trajectories").ledger
        assert ledger["status"].tolist().count("used") == expected
        assert set(ledger.loc[ledger["status"].eq("failed"), "reason"]) <= {NO_FILE}


TWO = tar(("b.csv", tarfile.REGTYPE, GOOD.encode()))  # the table `b.csv` begins at byte 1024
DAMAGED = {  # what the error of a damaged archive says; only the first table is intact
    "a wrong checksum": (TWO[:1124] + b"?" + TWO[1125:], "header at byte 1024 of the archive is damaged: bad checksum"),
    "no header": (TWO[:1024] + b"x" * 512 + TWO[1024:], "header at byte 1024 of the archive is damaged"),
    "cut within a header": (TWO[:1224], "header at byte 1024 of the archive is damaged: truncated header"),
    "cut within a table": (TWO[:1540], "unexpected end of data"),
    "one archive after the other": (TWO + TWO, "several archives in one file"),
    "one archive after another with long records": (TWO.ljust(2**18, b"\0") + TWO, "several archives in one file"),
    "zeros before a table": (TWO[:1024] + bytes(512) + TWO[1024:], "several archives in one file"),
    "no archive": (b"<html>" + bytes(600), "not a tar archive"),
}


@pytest.mark.parametrize("what", DAMAGED)
def test_a_damaged_tar_archive_is_refused_rather_than_read_up_to_the_damage(tmp_path, what):
    data, expected = DAMAGED[what]
    (tmp_path / "logs.tar").write_bytes(data)
    with pytest.raises(SourceError, match=rf"logs\.tar!: .*{expected}"):
        load(str(tmp_path / "logs.tar"), "trajectories")


OPENINGS = [  # of calls that are text only, and of results, in every syntax, without an end
    "<tool=a>", "<tool_call>{", '<tool_use>[{"a": 1}', "[TOOL_CALLS][", "```{", "```json {", "```bash\n", "<a_b>",
    "[f(", '<x:invoke name="f">', "</a_b><a_b>", "Action: a(\n", "Action: a(b)\n", "Action: a\n\n", "Action:\n",
    "**Action: *", "Action: a\nAction Input:\n\n", "<tool=a><b>", "<tool=a></tool", "Action: a\nObservation 1",
    "Observation:```", "\n", "</result> ", " ",
]  # fmt: skip
CLOSED = {  # calls after such openings
    "<tool=a>1</tool>": ("a", "1"),
    '```bash\nls -l "x"\n```': ("shell", 'ls -l "x"'),
    '[TOOL_CALLS][{"name": "a", "arguments": 1}]': ("a", "1"),
}


@pytest.mark.timeout(60)
@pytest.mark.parametrize("opening", OPENINGS)
def test_calls_are_sought_in_a_long_text_of_their_beginnings(opening):
    many = opening * (150_000 // len(opening))  # a search of quadratic time would take minutes for each
    for text in (many, f"Observation: {many} x", f"Action: {many} x", f"Action: a\nAction Input: {many} x"):
        said = [turn for role in ("assistant", "user") for turn, _ in turns_of(Message(role, text))]
        answer_in_order([*said, *said])


@pytest.mark.parametrize(("text", "call"), CLOSED.items())
def test_a_call_is_found_after_beginnings_of_other_forms(text, call):
    for opening in ("<execute_a>", "<function=f>", "</b_c><b_c>"):
        ((turn, _),) = turns_of(Message("assistant", f"{opening * 9}\n{text}"))
        assert (turn.call.name, turn.call.arguments) == call


@pytest.mark.parametrize("times", [2, 20])
def test_a_text_that_is_stored_once_and_shown_often_counts_each_time(tmp_path, monkeypatch, times):
    monkeypatch.setenv(MOST_BYTES, str(LIMIT))
    attached = {"role": "user", "content": [{"type": "text", "text": "attachment://a"}] * times}
    sample = {"id": 1, "epoch": 1, "attachments": {"a": "x" * 4_000}, "messages": [attached]}
    (tmp_path / "a.eval").write_bytes(archive(header=HEADER, samples__1_epoch_1=sample))
    if times == 20:
        with pytest.raises(SourceError, match=LARGE):
            transcript([str(tmp_path / "a.eval")], read_log)
    else:
        (turn,) = transcript([str(tmp_path / "a.eval")], read_log).turns
        assert turn.text.count("x") == times * 4_000


def answered(text):
    """Return how the game answered a command, in the log of an agent."""
    turns = [{"role": "assistant", "content": "!a()"}, {"role": "system", "content": f"{text} output:"}]
    return mindcraft_transcript(["Andy_0_0.json"], lambda _: json.dumps({"turns": turns}).encode()).turns


SEARCHED = {  # what is searched, by a text of the attack's length
    "a name of a tool": lambda text: is_error("fine", name=f"{text}!"),
    "arguments of a tool": lambda text: is_error("fine", arguments=f"cd /&& {text}!"),
    "an answer of the game": answered,
    "ids of tasks": lambda text: VARIANT.sub("", f"{text}!"),
    "a claim": claims_success,
    "a cause": cause_of,
}


@pytest.mark.timeout(120)
@pytest.mark.parametrize("what", SEARCHED)
@pytest.mark.parametrize("part", ["_read", "\n", " -", "v1 ", "a.", "is booked ", "(", "no "])
def test_a_long_text_is_searched_however_it_begins(what, part):
    SEARCHED[what](part * (200_000 // len(part)))  # a search of quadratic time would take minutes


def test_names_of_tools_and_tasks_are_recognised_as_before():
    assert not is_error("fine\nKeyError: 1", name="read_file")
    assert is_error("fine\nKeyError: 1", name="run")
    assert [VARIANT.sub("", name) for name in ("a__seed-3", "b v12", "seed-3", "seeds")] == ["a", "b", "", "seeds"]
