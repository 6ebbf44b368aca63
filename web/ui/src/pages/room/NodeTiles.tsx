import { useEffect, useRef, useState, type PointerEvent } from "react";
import { count } from "../../format/number";
import { useTheme } from "../../shell/theme";
import { drawNodes, gridOf, nodeAt, readTheme, type Tile } from "./drawNodes";
import type { Palette } from "./paint";
import { nodeText, type RoomNode } from "./roomNode";

interface NodeTilesProps {
  place: string;
  nodes: readonly RoomNode[];
  tile: Tile;
  palette: Palette;
  chosen: string;
  onChoose: (node: RoomNode) => void;
}

/** The nodes of one place, drawn when they are on the screen. The list of nodes has the same in words. */
export function NodeTiles({ place, nodes, tile, palette, chosen, onChoose }: NodeTilesProps) {
  const canvas = useRef<HTMLCanvasElement>(null);
  const [width, setWidth] = useState(0);
  const [visible, setVisible] = useState(false);
  const theme = useTheme();
  const grid = gridOf(nodes.length, width, tile);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const size = new ResizeObserver(([entry]) => setWidth(entry?.contentRect.width ?? 0));
    const view = new IntersectionObserver(([entry]) => setVisible(entry?.isIntersecting ?? false), { rootMargin: "300px" });
    size.observe(element);
    view.observe(element);
    return () => {
      size.disconnect();
      view.disconnect();
    };
  }, []);

  useEffect(() => {
    const element = canvas.current;
    if (!element) return;
    const scale = window.devicePixelRatio;
    element.width = visible ? width * scale : 0; // a canvas off the screen keeps no memory
    element.height = visible ? grid.height * scale : 0;
    const context = element.getContext("2d");
    if (!visible || !context) return;
    context.scale(scale, scale);
    drawNodes(context, { nodes, columns: grid.columns, tile, palette, theme: readTheme(element), chosen });
  }, [nodes, tile, palette, chosen, theme, width, visible, grid.columns, grid.height]);

  const at = (event: PointerEvent | React.MouseEvent) => {
    const box = event.currentTarget.getBoundingClientRect();
    return nodeAt(nodes, grid.columns, tile, event.clientX - box.left, event.clientY - box.top);
  };
  return (
    <canvas
      ref={canvas}
      className="node-tiles"
      style={{ height: Math.max(grid.height, 1) }}
      role="img"
      aria-label={`${place}: ${count(nodes.length, "node")}`}
      onPointerMove={(event) => {
        const node = at(event);
        event.currentTarget.title = node ? nodeText(node) : "";
        event.currentTarget.style.cursor = node ? "pointer" : "";
      }}
      onClick={(event) => {
        const node = at(event);
        if (node) onChoose(node);
      }}
    />
  );
}
