"""The picture of the result: a panel for each task, by width the accuracies of the ways there, with their deviations."""
from xml.sax.saxutils import escape

COLORS = {"without": "#444444", "afterwards": "#b5493b", "qat": "#3a6ea5", "moq": "#3a7d44"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 250, 220, 60, 64, 60


def panel(number, task, rows):
    x0 = LEFT + number * (WIDTH + GAP)
    widths = sorted({row["bits"] for row in rows if row["bits"]}, reverse=True)
    ends = [100 * (row["accuracy"]["mean"] + sign * row["accuracy"]["deviation"]) for row in rows for sign in (-1, 1)]
    low, high = min(ends), max(ends)
    y_of = lambda value: TOP + HEIGHT - 6 - (HEIGHT - 12) * (value - low) / ((high - low) or 1)
    lines = [f'<rect x="{x0}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
             f'<text x="{x0}" y="{TOP - 8}" font-size="12">{escape(task)}: accuracy in the test, %</text>',
             f'<text x="{x0 - 6}" y="{TOP + 10}" text-anchor="end">{high:.2f}</text><text x="{x0 - 6}" y="{TOP + HEIGHT - 2}" text-anchor="end">{low:.2f}</text>']
    place = lambda bits, way: x0 + WIDTH * (widths.index(bits) + 0.5) / len(widths) + 14 * (list(COLORS).index(way) - 2)
    for bits in widths:
        lines.append(f'<text x="{place(bits, "qat")}" y="{TOP + HEIGHT + 14}" text-anchor="middle">{bits} bits</text>')
    for row in rows:
        mean, off, color = 100 * row["accuracy"]["mean"], 100 * row["accuracy"]["deviation"], COLORS[row["way"]]
        if not row["bits"]:  # a line across, with a band as wide as it deviates
            lines.append(f'<rect x="{x0}" y="{y_of(mean + off):.1f}" width="{WIDTH}" height="{y_of(mean - off) - y_of(mean + off):.1f}" fill="{color}" opacity="0.12"/>'
                         f'<line x1="{x0}" y1="{y_of(mean):.1f}" x2="{x0 + WIDTH}" y2="{y_of(mean):.1f}" stroke="{color}"/>')
            continue
        x = place(row["bits"], row["way"])
        lines.append(f'<line x1="{x:.1f}" y1="{y_of(mean + off):.1f}" x2="{x:.1f}" y2="{y_of(mean - off):.1f}" stroke="{color}"/>'
                     f'<circle cx="{x:.1f}" cy="{y_of(mean):.1f}" r="4" fill="{color}"/>')
    return lines


def draw(path, result):
    words = {"without": "not rounded", "afterwards": "rounded after training", "qat": "rounded from the first step (QAT)", "moq": "bit by bit (MoQ)"}
    lines = [f'<circle cx="{20 + 190 * i}" cy="38" r="4" fill="{COLORS[way]}"/><text x="{30 + 190 * i}" y="42">{text}</text>' for i, (way, text) in enumerate(words.items())]
    for number, (task, rows) in enumerate(result["tasks"].items()):
        lines += panel(number, task, rows)
    width = max(LEFT + len(result["tasks"]) * (WIDTH + GAP), 780)
    title = f"Training on quantized weights, {result['cpu']}: means of {result['seeds']} orders of the samples, with deviations"
    path.write_text("\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 30}" font-family="sans-serif" font-size="11">',
                               f'<rect width="100%" height="100%" fill="white"/><text x="10" y="20" font-size="13">{escape(title)}</text>', *lines, "</svg>", ""]))
