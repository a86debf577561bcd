"""Telegraf's processors.execd."""

import re

import lab


def run(here):
    count = 5000
    data, out = here.folder / "in.lp", here.folder / "out.lp"
    lines = ["flow,src=10.20.30.40 bytes=120i 1700000000000000000"]
    odd = ['src="2001:db8::1",', 'src="x",', "", 'note="a b, c=\\"d\\"",']
    lines += [f"flow,n={number} {odd[number % 4]}bytes={number}i 17{number:08}000000000" for number in range(count)]
    data.write_text("\n".join(lines) + "\n")
    configuration = here.folder / "telegraf.conf"
    example = here.here(lab.examples("toml")[0])
    configuration.write_text(
        '[agent]\n  interval = "1h"\n  flush_interval = "200ms"\n  omit_hostname = true\n'
        "  metric_batch_size = 1000\n  metric_buffer_limit = 100000\n  skip_processors_after_aggregators = true\n"
        f'[[inputs.tail]]\n  files = ["{data}"]\n  from_beginning = true\n  path_tag = ""\n'
        f'  watch_method = "poll"\n  data_format = "influx"\n  max_undelivered_lines = 100000\n{example}'
        f'[[outputs.file]]\n  files = ["{out}"]\n  data_format = "influx"\n'
    )
    with here.started(here.programs / "telegraf", "--config", configuration) as log:
        found = lab.wait_for("all metrics", lambda: (read := lab.lines_of(out)) and len(read) > count and read)
        page = re.search(r"`(flow,src=[^`]*)` becomes `([^`]*)`", lab.PAGE.read_text().replace("\n", " "))
        lab.check(lines[0].startswith(page[1]), True, "the page's example is sent")
        lab.check(found[0], f"{page[2]} 1700000000000000000", "the page's example")
        lab.check(len(found), count + 1, "metrics")
        for number, line in enumerate(found[1:]):
            sent = lines[number + 1]
            if number % 4 == 0:
                head, time = sent.rsplit(" ", 1)
                sent = f'{head},src_site="hq" {time}'
            # Telegraf sorts tags and writes fields in any order.
            lab.check(sorted(re.split("[, ]", line)), sorted(re.split("[, ]", sent)), f"metric {number}")
        lab.check("E! [processors.execd]" in log.read_text(), False, "Telegraf complains")
    missing = configuration.read_text().replace("networks.fib", "missing.fib")
    configuration.write_text(missing)
    with here.started(here.programs / "telegraf", "--config", configuration) as log:
        message = '[processors.execd] stderr: "fibula: '
        lab.wait_for("the error", lambda: message in log.read_text())
