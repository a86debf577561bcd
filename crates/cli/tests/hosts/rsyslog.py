"""rsyslog's mmexternal."""

import shutil
import socket

import lab


def run(here):
    daemon = shutil.which("rsyslogd", path="/usr/sbin:/usr/local/sbin:/usr/bin:/usr/local/bin")
    if not daemon:
        raise lab.Failed("rsyslogd is not installed")
    port, out = lab.free_port(), here.folder / "sites.log"
    example = here.here(lab.examples("rsyslog")[0])
    configuration = here.folder / "rsyslog.conf"
    (here.folder / "rsyslog").mkdir(exist_ok=True)
    configuration.write_text(
        f'global(workDirectory="{here.folder}/rsyslog")\nmodule(load="imtcp")\n'
        f'input(type="imtcp" address="127.0.0.1" port="{port}")\n{example}'
    )
    with here.started(daemon, "-n", "-f", configuration, "-i", here.folder / "rsyslog.pid") as log:

        def send(texts):
            with lab.wait_for("rsyslog listens", lambda: connected(port)) as connection:
                connection.sendall("".join(f"<13>Nov 28 20:00:00 host app: {text}\n" for text in texts).encode())

        send(["hello"])
        lab.wait_for("a message", lambda: lab.lines_of(out))
        lab.check(lab.lines_of(out), ["127.0.0.1 here hello"], "the page's example")
        # A new table for later messages, and no message lost or answered with another's values.
        count = 2000
        send(f"first {number}" for number in range(count))
        lab.wait_for("all messages", lambda: len(lab.lines_of(out)) == count + 1)
        (here.folder / "moved.csv").write_text("prefix,site\n127.0.0.0/8,moved\n")
        here.build("moved.csv", "networks.fib")
        send(f"second {number}" for number in range(count))
        lab.wait_for("all messages", lambda: len(lab.lines_of(out)) == 2 * count + 1)
        expected = [f"127.0.0.1 here first {number}" for number in range(count)]
        expected += [f"127.0.0.1 moved second {number}" for number in range(count)]
        lab.check(lab.lines_of(out)[1:], expected, "messages before and after a new table")
        lab.check("invalid reply" in log.read_text(), False, "rsyslog complains")
    here.build("networks.csv", "networks.fib")
    # An error of the command is in rsyslog's log.
    configuration.write_text(configuration.read_text().replace("networks.fib", "missing.fib"))
    with here.started(daemon, "-n", "-f", configuration, "-i", here.folder / "rsyslog.pid") as log:
        with lab.wait_for("rsyslog listens", lambda: connected(port)) as connection:
            connection.sendall(b"<13>Nov 28 20:00:00 host app: hello\n")
        lab.wait_for("the error", lambda: "invalid reply 'fibula: " in log.read_text())


def connected(port):
    try:
        return socket.create_connection(("127.0.0.1", port))
    except OSError:
        return None
