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

Rules of a packet filter, and which of them packets hit:

>>> rules = fibula.Rules.parse("src 10.0.0.0/8 tcp dport 22 -> allow\\ntcp dport 22 -> drop")
>>> rules.lookup("10.0.0.1", "192.0.2.7", "tcp", 40000, 22)["action"]
'allow'
"""

from fibula._fibula import (
    AddressError,
    Column,
    Columns,
    ColumnError,
    DeviceError,
    FibulaError,
    Rules,
    SnapshotError,
    SourceError,
    __version__,
)
from fibula._devices import DeviceList, DeviceWarning, devices
from fibula._resident import DeviceTable
from fibula.dated import DatedTable
from fibula.table import DamageWarning, Table

__all__ = [
    "AddressError",
    "Column",
    "ColumnError",
    "Columns",
    "DamageWarning",
    "DatedTable",
    "DeviceError",
    "DeviceList",
    "DeviceTable",
    "DeviceWarning",
    "FibulaError",
    "Rules",
    "SnapshotError",
    "SourceError",
    "Table",
    "__version__",
    "devices",
]
