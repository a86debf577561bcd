"""ClickHouse's executable functions, in chdb."""

import threading

from chdb import session

import lab

# For each format, the function's type, its argument, and what the command needs.
FORMATS = {
    "TabSeparated": ("executable_pool", "String", "--stream tsv --column 1"),
    "JSONEachRow": ("executable_pool", "String", "--stream jsonl --column ip"),
    "RowBinary": ("executable_pool", "String", "--stream rowbinary --types String --column 1"),
    "ArrowStream": ("executable_pool", "String", "--stream arrow --column ip"),
    # A process for each block.
    "TabSeparatedWithNames": ("executable", "String", "--stream tsv --column ip"),
}


def function(here, name, kind, argument, of_format, command, table):
    return (
        f"<function><type>{kind}</type><name>{name}</name><pool_size>2</pool_size>"
        f"<return_type>Nullable(String)</return_type><return_name>ip_country</return_name>"
        f"<argument><type>{argument}</type><name>ip</name></argument>"
        f"<format>{of_format}</format><execute_direct>0</execute_direct>"
        f"<command>exec {here.fibula} annotate --table {table} {command} --add country --only-added -q</command>"
        "</function>"
    )


class ClickHouse:
    """A session with these functions."""

    def __init__(self, here, name, functions):
        folder = here.folder / name
        folder.mkdir()
        (folder / "fibula_function.xml").write_text(functions)
        self.session = session.Session(
            f"{folder}/data?user_scripts_path={folder}&user_defined_executable_functions_config={folder}/*_function.xml"
        )

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.session.close()

    def lines(self, query, of_format="TSV"):
        return str(self.session.query(query, of_format)).splitlines()


def run(here):
    with ClickHouse(here, "clickhouse-page", here.here(lab.examples("xml")[0])) as clickhouse:
        query, shown = [], []
        for line in lab.examples("sql")[0].splitlines():
            (shown if line.startswith("-- ") else query).append(line.removeprefix("-- "))
        found = clickhouse.lines("\n".join(query).rstrip(";"))
        lab.check([line.replace("\t", " ").replace("\\N", "NULL") for line in found], shown, "the page's example")
    rows_are_those_of_files(here)
    a_new_table(here)
    errors(here)


def rows_are_those_of_files(here):
    count = min(here.rows, 1_000_000)
    data, plain = here.folder / "ips.csv", here.folder / "ips-plain.csv"
    with open(data, "w") as out:
        out.write("n,ip\n")
        out.writelines(f'{number},"{cell}"\n' for number, cell in enumerate(lab.cells(count, seed=2)))
    here.run("annotate", "--table", here.countries, "--column", "ip", "--add", "country", data, "-o", plain, "-q")
    functions = "".join(
        function(here, f"of_{name}", kind, argument, name, command, here.countries)
        for name, (kind, argument, command) in FORMATS.items()
    )
    with ClickHouse(here, "clickhouse-rows", f"<functions>{functions}</functions>") as clickhouse:
        clickhouse.lines("CREATE TABLE rows (n UInt64, ip String, ip_country Nullable(String)) ENGINE = Memory")
        clickhouse.lines(
            f"INSERT INTO rows SELECT n, ip, nullIf(ip_country, '') FROM file('{plain}', CSVWithNames, "
            "'n UInt64, ip String, ip_country String')"
        )
        for name in FORMATS:
            differ = f"countIf(of_{name}(ip) IS DISTINCT FROM ip_country)"
            query = f"SELECT count(), countIf(ip_country IS NOT NULL) > 0, {differ} FROM rows"
            lab.check(clickhouse.lines(query), [f"{count}\t1\t0"], f"{name}: rows, matches, differences")
            lab.say(f"clickhouse: {name}: {count:,} rows equal")


def a_new_table(here):
    def replace(value):
        (here.folder / "all.csv").write_text(f"prefix,country\n0.0.0.0/0,{value}\n")
        here.build("all.csv", "all.fib")

    replace("t0")
    functions = "".join(
        function(here, f"of_{name}", kind, argument, name, command, here.folder / "all.fib")
        for name, (kind, argument, command) in FORMATS.items()
    )
    with ClickHouse(here, "clickhouse-new", f"<functions>{functions}</functions>") as clickhouse:
        for name in FORMATS:
            replace("t0")
            replacing = threading.Thread(target=lambda: [replace(f"t{number}") for number in range(1, 6)])
            replacing.start()
            value = f"of_{name}(IPv4NumToString(toUInt32(number))) AS v"
            query = f"SELECT {value}, count() FROM numbers(500000) GROUP BY v ORDER BY v"
            rows, values = 0, set()
            while replacing.is_alive():
                for line in clickhouse.lines(query):
                    value, found = line.split("\t")
                    values.add(value)
                    rows += int(found)
                lab.check(rows % 500_000, 0, f"{name}: rows under new tables")
            replacing.join()
            lab.check(values <= {f"t{number}" for number in range(6)}, True, f"{name}: values {values}")
            # Each process of the pool takes the new table with its next block.
            for _ in range(3):
                lab.check(clickhouse.lines(query), ["t5\t500000"], f"{name}: after the last table")


def errors(here):
    tabs = FORMATS["TabSeparated"][2]
    functions = function(here, "no_table", "executable", "String", "TabSeparated", tabs, "missing.fib")
    types = "--stream rowbinary --types 'String, Nullable(String)' --column 1"
    functions += function(here, "wrong_types", "executable_pool", "String", "RowBinary", types, here.countries)
    with ClickHouse(here, "clickhouse-errors", f"<functions>{functions}</functions>") as clickhouse:
        for name, message in [
            ("no_table", "fibula: missing.fib: No such file or directory"),
            ("wrong_types", "fibula: standard input: "),
        ]:
            try:
                clickhouse.lines(f"SELECT {name}(IPv4NumToString(toUInt32(number))) FROM numbers(10)")
            except Exception as error:  # chdb's own type
                lab.check(message in str(error), True, f"{name}: {str(error)[:500]}")
            else:
                raise lab.Failed(f"{name}: no exception")
