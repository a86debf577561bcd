"""Lookups in DuckDB's SQL, as Arrow functions of the Python API.

>>> import duckdb
>>> import fibula, fibula.duckdb
>>> table = fibula.Table.build([("10.0.0.0/8", {"site": "hq", "vlan": 1})])
>>> con = duckdb.connect()
>>> fibula.duckdb.register(con, table, "site_of", add="site")
>>> con.sql("SELECT site_of('10.1.2.3') AS site, site_of('192.0.2.1') AS none").fetchall()
[('hq', None)]
>>> fibula.duckdb.register(con, table)
>>> con.sql("SELECT ip_lookup('10.1.2.3').vlan AS vlan").fetchall()
[(1,)]

DuckDB's Arrow functions need pyarrow.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

from fibula import _columns
from fibula._fibula import ColumnError

if TYPE_CHECKING:
    import duckdb

    from fibula.table import Table


def register(
    con: duckdb.DuckDBPyConnection,
    table: Table,
    name: str = "ip_lookup",
    add: str | Iterable[str] | None = None,
    *,
    parameter: str = "VARCHAR",
    default: Mapping[str, float | str] | float | str | None = None,
    strict: bool = False,
    prefix_form: str = "text",
) -> None:
    """Makes the table a function of the connection: `SELECT ip_lookup(src).asn FROM flows`.

    One name in `add` gives the value, several (and None, which is all columns of the table) a struct. `parameter` is the
    type of the addresses: "VARCHAR", or "UINTEGER" and "BIGINT" for IPv4, or "BLOB" of 4 or 16 bytes. NULL and what is
    not an address give NULL (of a struct, NULL in its fields), or an error if `strict`.
    """
    import pyarrow

    alone = isinstance(add, str)
    asked = _columns.options(add, default, strict, prefix_form, "plain", 1)
    search = _columns.search_of(table)
    fields = pyarrow.table(search(None, [], None, asked)).schema
    if alone and len(fields) > 1:
        raise ColumnError("a prefix in binary form is two columns: add=['prefix'] gives both")
    kinds = {field.name: _sql(pyarrow, field.type) for field in fields}
    members = ', '.join('"' + field.replace('"', '""') + '" ' + kind for field, kind in kinds.items())
    result = next(iter(kinds.values())) if alone else f"STRUCT({members})"

    def look(column: Any) -> Any:
        found = search(None, column, None, asked)
        if alone:
            return pyarrow.array(found[0])
        return pyarrow.array(found)

    connection: Any = con  # its types know enumerations, not the names that they stand for
    connection.create_function(name, look, [parameter], result, type="arrow", null_handling="special")


def _sql(pyarrow: Any, kind: Any) -> str:
    names = {
        pyarrow.uint8(): "UTINYINT",
        pyarrow.uint32(): "UINTEGER",
        pyarrow.uint64(): "UBIGINT",
        pyarrow.float64(): "DOUBLE",
        pyarrow.bool_(): "BOOLEAN",
        pyarrow.string(): "VARCHAR",
        pyarrow.binary(): "BLOB",
    }
    return "VARCHAR[]" if pyarrow.types.is_list(kind) else names[kind]
