"""What a table answers about one address or prefix, and its routes."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, overload

from fibula import _columns
from fibula import _fibula as native

if TYPE_CHECKING:
    from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network

    Address = str | int | bytes | IPv4Address | IPv6Address
    Prefix = Address | IPv4Network | IPv6Network


# Routes that iteration makes records of at once.
_AT_ONCE = 1024


class Routes:
    """The part of `Table` that gives records, one for each route."""

    __slots__ = ()

    _native: native.Table

    def __len__(self) -> int:
        """The number of prefixes, of both families."""
        return len(self._native)

    @overload
    def lookup(self, address: Address) -> dict[str, Any] | None: ...

    @overload
    def lookup(self, address: Address, add: str) -> Any: ...

    def lookup(self, address: Address, add: str | None = None) -> Any:
        """What the longest prefix that covers the address says: `prefix` and every column of the table, or only the value
        of the column `add`.

        None if no prefix covers it. An address is a str, an object of `ipaddress`, 4 or 16 bytes in network order, or
        an int: below 2**32 it is IPv4, otherwise IPv6. v4-mapped IPv6 addresses (`::ffff:192.0.2.1`) are looked up as
        the IPv4 addresses that they stand for. Zones (`fe80::1%eth0`) are refused.

        Raises `AddressError` for text, bytes and numbers that are no address, `ColumnError` for a column that is not
        there, TypeError for other types.

        Takes some microseconds; columns are a hundred times as fast by `lookup_many`.

        >>> table.lookup("10.20.30.40")
        {'prefix': '10.20.0.0/16', 'site': 'zurich', 'vlan': 20}
        >>> table.lookup("10.20.30.40", "site"), table.lookup("192.0.2.1")
        ('zurich', None)
        """
        return self._native.lookup(address, _columns.one_name(add))

    def covering(self, prefix: Prefix) -> list[dict[str, Any]]:
        """All prefixes that cover an address, or the whole of a prefix, longest first.

        >>> [record["prefix"] for record in table.covering("10.20.0.1")]
        ['10.20.0.0/16', '10.0.0.0/8']
        """
        return self._native.covering(prefix)

    def covered(self, prefix: Prefix) -> list[dict[str, Any]]:
        """All prefixes that lie inside a prefix, itself among them, ordered by address, then by length.

        >>> [record["vlan"] for record in table.covered("10.16.0.0/12")]
        [20]
        """
        return self._native.covered(prefix)

    def __getitem__(self, key: Prefix) -> dict[str, Any]:
        """Of an address what `lookup` says, of a prefix its own route; KeyError if there is none.

        >>> table["10.20.30.40"]["site"], table["10.0.0.0/8"]["site"]
        ('zurich', 'hq')
        """
        found = self._native.get(key)
        if found is None:
            raise KeyError(str(key))
        return found

    def __contains__(self, key: object) -> bool:
        """Whether a prefix covers the address, or whether the table has exactly this prefix.

        >>> "10.20.30.40" in table, "10.20.30.0/24" in table
        (True, False)
        """
        return self._native.get(key) is not None

    def __iter__(self) -> Iterator[dict[str, Any]]:
        """All routes, as `lookup` gives them: IPv4 before IPv6, by address, then by length.

        >>> [record["prefix"] for record in table]
        ['10.0.0.0/8', '10.20.0.0/16']
        """
        for start in range(0, len(self), _AT_ONCE):
            yield from self._native.routes(start, start + _AT_ONCE)

    def where(self, conditions: Mapping[str, object] | None = None, /, **columns: object) -> list[dict[str, Any]]:
        """The routes that have these values, in the order of iteration.

        Conditions are columns with a value, or with several in a list, a tuple or a set, of which one has to be there;
        conditions on several columns have to hold together. None asks for routes without a value, `""` for those whose
        value is empty text. Fractions are compared as numbers: 8, 8.0 and "8.00" are the same. In the column that
        `tags` made, one of the listed values has to be equal. Names that are no Python names go into a mapping.

        Raises `ColumnError` for a column that is not there, and for text in place of an integer.

        >>> [record["prefix"] for record in table.where(site=["zurich", "berlin"])]
        ['10.20.0.0/16']
        """
        return self._native.where_(_columns.conditions(conditions, columns))

    def prefixes(
        self, conditions: Mapping[str, object] | None = None, /, *, aggregate: bool = False, **columns: object
    ) -> list[str]:
        """The prefixes of the routes that have these values (see `where`), or of all routes; such as those of an AS.

        `aggregate=True` gives the fewest prefixes that cover the same addresses, as `ipaddress.collapse_addresses` does.
        Longer routes with other values inside them are not left out.

        >>> table.prefixes(vlan=20)
        ['10.20.0.0/16']
        >>> table.prefixes(aggregate=True)
        ['10.0.0.0/8']
        """
        return self._native.prefixes(_columns.conditions(conditions, columns), aggregate)
