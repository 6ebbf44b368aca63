import { themeColour } from "../../styles/themeColour";
import { colours, type Palette } from "./paint";
import type { RoomNode } from "./roomNode";

// A place at the bottom is one canvas: ten thousand nodes with eight devices each are too many
// elements for a page.

/** The size of a node, CSS pixels. */
export interface Tile {
  width: number;
  height: number;
  gap: number;
}

export const largeTile: Tile = { width: 78, height: 40, gap: 4 }; // with its name and each device
export const smallTile: Tile = { width: 18, height: 14, gap: 2 }; // how much of it is used

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
export function gridOf(count: number, width: number, tile: Tile): { columns: number; height: number } {
  const columns = Math.max(1, Math.floor((width + tile.gap) / (tile.width + tile.gap)));
  const rows = Math.ceil(count / columns);
  return { columns, height: rows * (tile.height + tile.gap) - tile.gap };
}

/** The node at a point of the grid. */
export function nodeAt(nodes: readonly RoomNode[], columns: number, tile: Tile, x: number, y: number): RoomNode | undefined {
  const column = Math.floor(x / (tile.width + tile.gap));
  const row = Math.floor(y / (tile.height + tile.gap));
  if (column < 0 || column >= columns || row < 0) return undefined;
  return nodes[row * columns + column];
}

interface Picture {
  nodes: readonly RoomNode[];
  columns: number;
  tile: Tile;
  palette: Palette;
  theme: Theme;
  chosen: string;
}

/** Draws the nodes of a place. */
export function drawNodes(context: CanvasRenderingContext2D, { nodes, columns, tile, palette, theme, chosen }: Picture) {
  context.textBaseline = "middle";
  nodes.forEach((node, i) => {
    const x = (i % columns) * (tile.width + tile.gap);
    const y = Math.floor(i / columns) * (tile.height + tile.gap);
    const draw = tile === largeTile ? drawNode : drawSmall;
    draw(context, node, x, y, palette, theme);
    if (node.name === chosen) outline(context, tile, x, y, theme.accent, 2);
  });
}

function drawSmall(context: CanvasRenderingContext2D, node: RoomNode, x: number, y: number, palette: Palette, theme: Theme) {
  const { width, height } = smallTile;
  context.fillStyle = palette.node(node) ?? theme.sunken;
  context.fillRect(x, y, width, height);
  const used = node.cells.find((cell) => cell.mark === "u");
  if (palette.node(node) === undefined && node.share > 0) {
    context.fillStyle = used ? palette.device(used, node) : colours.used;
    context.fillRect(x, y + height * (1 - node.share), width, height * node.share);
  }
  const edge = edgeOf(node);
  if (edge !== undefined) outline(context, smallTile, x, y, edge, 2);
}

/** The colour around a node that is not as it should be. */
function edgeOf(node: RoomNode): string | undefined {
  if (node.state === "down" || node.fenced) return colours.fenced;
  return node.state === "draining" || node.handover ? colours.draining : undefined;
}

function drawNode(context: CanvasRenderingContext2D, node: RoomNode, x: number, y: number, palette: Palette, theme: Theme) {
  const tile = largeTile;
  const whole = palette.node(node);
  context.fillStyle = whole ?? theme.surface;
  context.globalAlpha = whole === undefined ? 1 : 0.9;
  context.fillRect(x, y, tile.width, tile.height);
  context.globalAlpha = 1;
  const edge = edgeOf(node);
  outline(context, tile, x, y, edge ?? theme.line, edge === undefined ? 1 : 2);
  if (node.state === "down") hatch(context, x, y, colours.fenced);

  context.fillStyle = whole === undefined ? theme.text : palette.paint === "use" && node.share < 0.4 ? "#10203a" : "#ffffff";
  context.font = `11px ${theme.font}`;
  context.fillText(fit(node.name), x + 6, y + 12, tile.width - 12);
  drawDevices(context, node, x + 6, y + 22, whole === undefined ? palette : undefined, theme);
}

function drawDevices(context: CanvasRenderingContext2D, node: RoomNode, x: number, y: number, palette: Palette | undefined, theme: Theme) {
  const cells = node.cells;
  const width = largeTile.width - 12;
  const height = 12;
  if (cells.length === 0) { // a node without devices: how much of its CPUs is used
    context.fillStyle = palette ? theme.sunken : "rgb(255 255 255 / 35%)";
    context.fillRect(x, y + 3, width, 6);
    context.fillStyle = palette ? colours.used : "rgb(255 255 255 / 85%)";
    context.fillRect(x, y + 3, width * Math.min(1, node.share), 6);
    return;
  }
  const size = Math.min(height, width / cells.length);
  const gap = size > 5 ? 1.5 : size > 2 ? 0.5 : 0;
  cells.forEach((cell, i) => {
    if (cell.mark === "x" || cell.mark === "d") context.fillStyle = colours.fenced;
    else if (cell.mark === "f") context.fillStyle = colours.foreign;
    else if (cell.mark === "u") context.fillStyle = palette ? palette.device(cell, node) : "rgb(255 255 255 / 85%)";
    else context.fillStyle = palette ? theme.sunken : "rgb(255 255 255 / 28%)";
    context.fillRect(x + (i * width) / cells.length, y, size - gap, height);
    if (cell.mark !== "u" && cell.mark !== ".") {
      context.strokeStyle = "#ffffff";
      context.lineWidth = 1;
      context.beginPath();
      context.moveTo(x + (i * width) / cells.length + 1, y + height - 1);
      context.lineTo(x + (i * width) / cells.length + size - gap - 1, y + 1);
      context.stroke();
    }
  });
}

function outline(context: CanvasRenderingContext2D, tile: Tile, x: number, y: number, colour: string, width: number) {
  context.strokeStyle = colour;
  context.lineWidth = width;
  context.strokeRect(x + width / 2, y + width / 2, tile.width - width, tile.height - width);
}

function hatch(context: CanvasRenderingContext2D, x: number, y: number, colour: string) {
  const tile = largeTile;
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
