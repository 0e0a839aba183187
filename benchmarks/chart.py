"""A chart of how something grows, both axes logarithmic, as SVG: for the docs."""

from math import ceil, floor, log10

import msgspec

WIDTH, HEIGHT, LEFT, TOP, RIGHT, BOTTOM = 860, 420, 60, 40, 320, 50
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#ff7f0e", "#17becf")


class Line(msgspec.Struct, frozen=True):
    name: str
    points: list[tuple[int, float]]


def chart(title: str, below: str, lines: list[Line]) -> str:
    sizes = [log10(size) for line in lines for size, _ in line.points]
    values = [log10(value) for line in lines for _, value in line.points]
    first, last, low, high = floor(min(sizes)), ceil(max(sizes)), floor(min(values)), ceil(max(values))

    def x(size: float) -> float:
        return round(LEFT + (log10(size) - first) / (last - first) * (WIDTH - LEFT - RIGHT), 1)

    def y(value: float) -> float:
        return round(HEIGHT - BOTTOM - (log10(value) - low) / (high - low) * (HEIGHT - TOP - BOTTOM), 1)

    drawn = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}" font-family="sans-serif" '
             'font-size="12">', f'<rect width="{WIDTH}" height="{HEIGHT}" fill="white"/>',
             f'<text x="{LEFT}" y="24" font-size="15">{title}</text>',
             f'<text x="{LEFT}" y="{HEIGHT - 12}">{below}</text>']
    for power in range(first, last + 1):
        at = x(10**power)
        drawn.append(f'<path d="M{at} {TOP}V{HEIGHT - BOTTOM}" stroke="#ddd"/>'
                     f'<text x="{at}" y="{HEIGHT - BOTTOM + 16}" text-anchor="middle">{10**power:,}</text>')
    for power in range(low, high + 1):
        at = y(10**power)
        drawn.append(f'<path d="M{LEFT} {at}H{WIDTH - RIGHT}" stroke="#ddd"/>'
                     f'<text x="{LEFT - 6}" y="{at + 4}" text-anchor="end">{10**power:g}</text>')
    for number, line in enumerate(lines):
        colour = COLOURS[number % len(COLOURS)]
        places = [(x(size), y(value)) for size, value in line.points]
        drawn.append(f'<polyline points="{" ".join(f"{a},{b}" for a, b in places)}" fill="none" stroke="{colour}" '
                     'stroke-width="2"/>')
        drawn += [f'<circle cx="{a}" cy="{b}" r="3" fill="{colour}"/>' for a, b in places]
        drawn.append(f'<text x="{WIDTH - RIGHT + 16}" y="{TOP + 20 + 20 * number}" fill="{colour}">{line.name}</text>')
    return "\n".join([*drawn, "</svg>", ""])
