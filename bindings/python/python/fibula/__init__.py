"""IP longest-prefix match for Python: one address, or columns of millions.

>>> import fibula
>>> table = fibula.Table.build([
...     ("10.0.0.0/8", {"site": "hq", "vlan": 1}),
...     ("10.20.0.0/16", {"site": "zurich", "vlan": 20}),
...     ("2001:db8::/32", {"site": "hq", "vlan": 6}),
... ])
>>> table.lookup("10.20.30.40")
{'prefix': '10.20.0.0/16', 'site': 'zurich', 'vlan': 20}
>>> table.lookup_many(["10.20.0.1", "192.0.2.1", None, "2001:db8::7"], add="vlan").to_pylist()
[20, None, None, 6]
"""

from fibula._fibula import (
    AddressError,
    Column,
    Columns,
    ColumnError,
    FibulaError,
    SnapshotError,
    SourceError,
    __version__,
)
from fibula.table import DamageWarning, Table

__all__ = [
    "AddressError",
    "Column",
    "ColumnError",
    "Columns",
    "DamageWarning",
    "FibulaError",
    "SnapshotError",
    "SourceError",
    "Table",
    "__version__",
]
