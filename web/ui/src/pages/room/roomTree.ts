import { hierarchy, type HierarchyNode } from "d3-hierarchy";
import type { RoomNode } from "./roomNode";

/** A place of the machine room: a pool, a part of its topology, or, without parts below it, nodes. */
export interface Place {
  name: string;
  key: string; // path from the top, which is unique
  places: Place[];
  nodes: RoomNode[]; // of a place at the bottom
}

/** What a place has in all. */
export interface Sums {
  nodes: number;
  devices: number;
  used: number; // devices that a job holds
  down: number; // nodes that take no work
}

/** The machine room as a tree: pools, then their topology from the top down. One pool alone is left out. */
export function roomTree(nodes: readonly RoomNode[]): Place {
  const root: Place = { name: "", key: "", places: [], nodes: [] };
  const pools = new Set(nodes.map((node) => node.pool));
  for (const node of nodes) {
    let place = root;
    for (const name of [...(pools.size > 1 ? [node.pool] : []), ...node.path]) place = below(place, name);
    place.nodes.push(node);
  }
  sortPlace(root);
  return root;
}

function below(place: Place, name: string): Place {
  let found = place.places.find((each) => each.name === name);
  if (found === undefined) {
    found = { name, key: `${place.key}/${name}`, places: [], nodes: [] };
    place.places.push(found);
  }
  return found;
}

const byName = new Intl.Collator("en", { numeric: true }).compare;

function sortPlace(place: Place) {
  place.places.sort((a, b) => byName(a.name, b.name));
  place.nodes.sort((a, b) => byName(a.name, b.name));
  place.places.forEach(sortPlace);
}

/** The sums of every place, by its key. */
export function sumPlaces(root: Place): Map<string, Sums> {
  const result = new Map<string, Sums>();
  hierarchy(root, (place) => place.places).eachAfter((at: HierarchyNode<Place>) => {
    const sums: Sums = { nodes: 0, devices: 0, used: 0, down: 0 };
    for (const node of at.data.nodes) addNode(sums, node);
    for (const child of at.children ?? []) {
      const own = result.get(child.data.key);
      if (own) for (const key of ["nodes", "devices", "used", "down"] as const) sums[key] += own[key];
    }
    result.set(at.data.key, sums);
  });
  return result;
}

function addNode(sums: Sums, node: RoomNode) {
  sums.nodes++;
  if (node.state !== "" && node.state !== "up") sums.down++;
  sums.devices += node.cells.length;
  for (const cell of node.cells) if (cell.mark === "u") sums.used++;
}
