"""The picture of the result: each run a point, a row for each side, a part for each task and measure."""
from xml.sax.saxutils import escape

SIDES = (("deepstride", "ours", "#3a7d44"), ("torch", "torch", "#b5493b"))


def draw(path, result):
    left, width, row = 300, 480, 20
    lines, y = [], 52
    for name, task in result["tasks"].items():
        for measure in ("loss", "accuracy"):
            found = task[measure]
            values = [value for side, *_ in SIDES for value in found[side]["runs"]]
            low, high = min(values), max(values)
            room = (high - low) / 10 or 1e-3 * abs(high)
            low, high = low - room, high + room
            place = lambda value: left + width * (value - low) / (high - low)
            theirs = found["torch"]
            # The band is PyTorch's spread.
            lines.append(f'<rect x="{place(theirs["min"]):.1f}" y="{y}" width="{max(place(theirs["max"]) - place(theirs["min"]), 1):.1f}" '
                         f'height="{2 * row}" fill="#f3e3df"/>')
            for side, label, color in SIDES:
                mean, middle = found[side]["mean"], y + row / 2
                lines += [f'<text x="{left - 8}" y="{middle + 4}" text-anchor="end">{escape(f"{name}, {measure} in the test: {label}")}</text>',
                          f'<line x1="{place(mean):.1f}" y1="{y + 2}" x2="{place(mean):.1f}" y2="{y + row - 2}" stroke="{color}" stroke-width="2"/>',
                          f'<text x="{left + width + 8}" y="{middle + 4}">{mean:.4f}</text>']
                lines += [f'<circle cx="{place(value):.1f}" cy="{middle}" r="3.5" fill="{color}" fill-opacity="0.6"/>' for value in found[side]["runs"]]
                y += row
            y += 10
    title = f"training on real data, {result['cpu']}: points are runs, lines their means, bands PyTorch's spread"
    path.write_text("\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{left + width + 80}" height="{y}" font-family="sans-serif" font-size="11">',
                               f'<rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="13">{escape(title)}</text>',
                               *lines, "</svg>", ""]))
