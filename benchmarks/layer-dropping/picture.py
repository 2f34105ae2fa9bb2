"""The picture of the result: the time of a step by the blocks that ran, and the loss in the test over samples and over time."""
from xml.sax.saxutils import escape

COLORS = {"dense": "#3a7d44", "dropped": "#b5493b"}
WIDTH, HEIGHT, LEFT, TOP, GAP = 260, 220, 60, 56, 70


def panel(number, title, xlabel, ylabel, series):
    """`series`: (color, points, whether they are joined)."""
    x0 = LEFT + number * (WIDTH + GAP)
    points = [point for _, some, _ in series for point in some]
    low, high = ([f(p[i] for p in points) for i in (0, 1)] for f in (min, max))
    at = lambda p: (x0 + WIDTH * (p[0] - low[0]) / ((high[0] - low[0]) or 1), TOP + HEIGHT - HEIGHT * (p[1] - low[1]) / ((high[1] - low[1]) or 1))
    lines = [f'<rect x="{x0}" y="{TOP}" width="{WIDTH}" height="{HEIGHT}" fill="none" stroke="#999"/>',
             f'<text x="{x0}" y="{TOP - 8}" font-size="12">{escape(title)}</text>',
             f'<text x="{x0 + WIDTH / 2}" y="{TOP + HEIGHT + 30}" text-anchor="middle">{escape(xlabel)}</text>',
             f'<text x="{x0 - 6}" y="{TOP + 8}" text-anchor="end">{high[1]:.4g}</text><text x="{x0 - 6}" y="{TOP + HEIGHT}" text-anchor="end">{low[1]:.4g}</text>',
             f'<text x="{x0}" y="{TOP + HEIGHT + 14}">{low[0]:.4g}</text><text x="{x0 + WIDTH}" y="{TOP + HEIGHT + 14}" text-anchor="end">{high[0]:.4g}</text>',
             f'<text x="{x0 - 40}" y="{TOP + HEIGHT / 2}" transform="rotate(-90 {x0 - 40} {TOP + HEIGHT / 2})" text-anchor="middle">{escape(ylabel)}</text>']
    for color, some, isJoined in series:
        places = [at(point) for point in some]
        if isJoined:
            lines.append(f'<polyline points="{" ".join(f"{x:.1f},{y:.1f}" for x, y in places)}" fill="none" stroke="{color}"/>')
        else:
            lines += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{color}"/>' for x, y in places]
    return lines


def draw(path, result):
    step, counts = result["step_ms"], result["step_ms"]["by_blocks"]
    fitted = [(blocks, step["fixed"] + step["block"] * blocks) for blocks in (counts[0][0], counts[0][-1])]
    curves = [[(COLORS[name], [(p[i], p[2]) for p in curve], True) for name in COLORS for curve in result["loss"][name]["curves"]] for i in (0, 1)]
    lines = panel(0, f"time of a step, R² {step['r2']:.3f}", "blocks that ran", "ms",
                  [("#444", list(zip(*counts)), False), ("#444", fitted, True)])
    lines += panel(1, "loss in the test", "samples", "", curves[0]) + panel(2, "loss in the test", "seconds of training", "", curves[1])
    title = f"layer dropping, {result['cpu']}: all blocks (green), blocks dropped (red)"
    width = LEFT + 3 * (WIDTH + GAP)
    path.write_text("\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{TOP + HEIGHT + 44}" font-family="sans-serif" font-size="11">',
                               f'<rect width="100%" height="100%" fill="white"/><text x="10" y="22" font-size="13">{escape(title)}</text>', *lines, "</svg>", ""]))
