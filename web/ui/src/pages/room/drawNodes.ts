import type { Node } from "../../api/types";
import { themeColour } from "../../styles/themeColour";
import { colours, useOf, type Palette } from "./paint";

// A place at the bottom is one canvas: ten thousand nodes with eight devices each are too many
// elements for a page.

export const tile = { width: 78, height: 40, gap: 4 } as const; // CSS pixels

/** The theme's colours, which a canvas does not know by itself. */
export interface Theme {
  text: string;
  faint: string;
  surface: string;
  sunken: string;
  line: string;
  accent: string;
  bad: string;
  font: string;
}

export function readTheme(element: Element): Theme {
  const style = getComputedStyle(element);
  const probe = (name: string) => themeColour(element, name);
  return {
    text: probe("--text"), faint: probe("--text-faint"), surface: probe("--surface"), sunken: probe("--sunken-strong"),
    line: probe("--line-strong"), accent: probe("--accent"), bad: probe("--bad"), font: style.fontFamily,
  };
}

/** How many tiles fit side by side, and how high they are together. */
export function gridOf(count: number, width: number): { columns: number; height: number } {
  const columns = Math.max(1, Math.floor((width + tile.gap) / (tile.width + tile.gap)));
  const rows = Math.ceil(count / columns);
  return { columns, height: rows * (tile.height + tile.gap) - tile.gap };
}

/** The node at a point of the grid. */
export function nodeAt(nodes: readonly Node[], columns: number, x: number, y: number): Node | undefined {
  const column = Math.floor(x / (tile.width + tile.gap));
  const row = Math.floor(y / (tile.height + tile.gap));
  if (column < 0 || column >= columns || row < 0) return undefined;
  return nodes[row * columns + column];
}

interface Picture {
  nodes: readonly Node[];
  columns: number;
  palette: Palette;
  theme: Theme;
  chosen: string;
}

/** Draws the nodes of a place. */
export function drawNodes(context: CanvasRenderingContext2D, { nodes, columns, palette, theme, chosen }: Picture) {
  context.textBaseline = "middle";
  nodes.forEach((node, i) => {
    const x = (i % columns) * (tile.width + tile.gap);
    const y = Math.floor(i / columns) * (tile.height + tile.gap);
    drawNode(context, node, x, y, palette, theme);
    if (node.name === chosen) outline(context, x, y, theme.accent, 2);
  });
}

function drawNode(context: CanvasRenderingContext2D, node: Node, x: number, y: number, palette: Palette, theme: Theme) {
  const whole = palette.node(node);
  context.fillStyle = whole ?? theme.surface;
  context.globalAlpha = whole === undefined ? 1 : 0.9;
  context.fillRect(x, y, tile.width, tile.height);
  context.globalAlpha = 1;
  const edge = node.state === "down" || node.fences?.length ? colours.fenced : node.state === "draining" || node.handover ? colours.draining : theme.line;
  outline(context, x, y, edge, edge === theme.line ? 1 : 2);
  if (node.state === "down") hatch(context, x, y, colours.fenced);

  context.fillStyle = whole === undefined ? theme.text : palette.paint === "use" && useOf(node) < 0.4 ? "#10203a" : "#ffffff";
  context.font = `11px ${theme.font}`;
  context.fillText(fit(node.name), x + 6, y + 12, tile.width - 12);
  drawDevices(context, node, x + 6, y + 22, whole === undefined ? palette : undefined, theme);
}

function drawDevices(context: CanvasRenderingContext2D, node: Node, x: number, y: number, palette: Palette | undefined, theme: Theme) {
  const cells = cellsOf(node);
  const width = tile.width - 12;
  const height = 12;
  if (cells.length === 0) { // a node without devices: how much of its CPUs is used
    context.fillStyle = palette ? theme.sunken : "rgb(255 255 255 / 35%)";
    context.fillRect(x, y + 3, width, 6);
    context.fillStyle = palette ? colours.used : "rgb(255 255 255 / 85%)";
    context.fillRect(x, y + 3, width * Math.min(1, useOf(node)), 6);
    return;
  }
  const size = Math.min(height, width / cells.length);
  const gap = size > 5 ? 1.5 : size > 2 ? 0.5 : 0;
  cells.forEach((cell, i) => {
    if (cell.fenced) context.fillStyle = colours.fenced;
    else if (cell.foreign) context.fillStyle = colours.foreign;
    else if (cell.jobs !== undefined) context.fillStyle = palette ? palette.device(cell.jobs) : "rgb(255 255 255 / 85%)";
    else context.fillStyle = palette ? theme.sunken : "rgb(255 255 255 / 28%)";
    context.fillRect(x + (i * width) / cells.length, y, size - gap, height);
    if (cell.foreign || cell.fenced) {
      context.strokeStyle = "#ffffff";
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x + (i * width) / cells.length + 1, y + height - 1);
      context.lineTo(x + (i * width) / cells.length + size - gap - 1, y + 1);
      context.stroke();
    }
  });
}

interface Cell {
  jobs?: readonly string[];
  foreign?: boolean;
  fenced?: boolean;
}

function cellsOf(node: Node): Cell[] {
  const cells: Cell[] = (node.devices ?? []).map((device) => ({
    jobs: device.jobs?.length ? device.jobs : undefined, foreign: Boolean(device.foreign), fenced: Boolean(device.fenced),
  }));
  for (const counted of node.counted ?? []) {
    for (let i = 0; i < counted.all; i++) cells.push(i < counted.used ? { jobs: node.jobs ?? [] } : {});
  }
  return cells;
}

function outline(context: CanvasRenderingContext2D, x: number, y: number, colour: string, width: number) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x + width / 2, y + width / 2, tile.width - width, tile.height - width);
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, colour: string) {
  context.save();
  context.beginPath();
  context.rect(x, y, tile.width, tile.height);
  context.clip();
  context.strokeStyle = colour;
  context.globalAlpha = 0.25;
  context.lineWidth = 2;
  for (let at = -tile.height; at < tile.width; at += 9) {
    context.beginPath();
    context.moveTo(x + at, y + tile.height);
    context.lineTo(x + at + tile.height, y);
    context.stroke();
  }
  context.restore();
}

/** The end of a long name tells nodes apart. */
function fit(name: string): string {
  const first = name.split(".")[0] ?? name;
  return first.length <= 11 ? first : `…${first.slice(-10)}`;
}
