#!/usr/bin/env bash
# pandas 3.1.1 changes the last digits of a 64-bit ID without an error in three places that seem safe: `read_json` makes floats of JSON
# *strings* if another one is null; `read_sql` with dtype Int64 goes through floats if another ID is NULL; and an Excel file that pandas has
# written contains another int64. Expected: 2237826556821345371.
# shellcheck source=findings/folder.sh
source "$(dirname "$0")/folder.sh"
python3 -m venv venv
venv/bin/pip -q install 'pandas==3.1.1' 'openpyxl==3.1.5'
cat >digits.py <<'PY'
import io
import sqlite3
import pandas

ID = 2237826556821345371
connection = sqlite3.connect(":memory:")
connection.execute("CREATE TABLE orders (id integer)")
connection.execute("INSERT INTO orders VALUES (?), (NULL)", [ID])
pandas.DataFrame({"id": [ID]}).to_excel("ids.xlsx", index=False)
frames = [
    pandas.read_json(io.StringIO(f'[{{"id": "{ID}"}}, {{"id": null}}]')),
    pandas.read_sql("SELECT id FROM orders", connection, dtype={"id": "Int64"}),
    pandas.read_excel("ids.xlsx", engine="openpyxl"),
]
for frame in frames:
    print(frame.id.dtype, int(frame.id[0]))
PY
mapfile -t found < <(venv/bin/python digits.py)
expect "read_json of a string and a null" "${found[0]}" "float64 2237826556821345280"
expect "read_sql with dtype Int64 of an integer and a NULL" "${found[1]}" "Int64 2237826556821345280"
expect "to_excel, read_excel" "${found[2]}" "int64 2237826556821345024"
