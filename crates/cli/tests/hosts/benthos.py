"""The processor `subprocess` of Redpanda Connect and Benthos."""

import re

import lab


def run(here):
    count = 5000
    data, out = here.folder / "in.jsonl", here.folder / "out.jsonl"
    page = re.search(r"`({\"src\"[^`]*)` becomes `([^`]*)`", lab.PAGE.read_text().replace("\n", " "))
    odd = ['{"src":null}', "no object", "", '{"src":"2001:db8::1"}']
    answers = ['{"src":null,"src_site":null,"src_vlan":null}', "no object", ""]
    answers += ['{"src":"2001:db8::1","src_site":"hq","src_vlan":null}']
    data.write_text("".join(f"{line}\n" for line in [page[1], *(odd[number % 4] for number in range(count))]))
    configuration = here.folder / "benthos.yaml"
    configuration.write_text(
        f"input: {{ file: {{ paths: [{data}], scanner: {{ lines: {{ omit_empty: false }} }} }} }}\n"
        f"output: {{ file: {{ path: {out}, codec: lines }} }}\nhttp: {{ enabled: false }}\n"
        f"logger: {{ level: WARN }}\n{here.here(lab.examples('yaml')[0])}"
    )
    with here.started(here.programs / "benthos", "-c", configuration) as log:
        lines = lab.wait_for("all messages", lambda: (read := lab.lines_of(out)) and len(read) > count and read)
        lab.check(lines[0], page[2], "the page's example")
        lab.check(lines[1:], [answers[number % 4] for number in range(count)], "messages")
        lab.check(log.read_text(), "", "Benthos complains")
    out.unlink()
    configuration.write_text(configuration.read_text().replace("networks.fib", "missing.fib"))
    with here.started(here.programs / "benthos", "-c", configuration) as log:
        lab.wait_for("the error", lambda: "fibula: " in log.read_text())
