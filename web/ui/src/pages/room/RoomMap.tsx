import { useMemo } from "react";
import { useNodeRows, useTopology } from "../../api/queries";
import type { NodeRow, Topology } from "../../api/types";
import { Async } from "../../components/Async";
import { Empty } from "../../components/Empty";
import { largeTile, smallTile } from "./drawNodes";
import { Legend } from "./Legend";
import { Palette, type Paint } from "./paint";
import { PlaceBox } from "./PlaceBox";
import { fromRow, fromTopology } from "./roomNode";
import { roomTree, sumPlaces } from "./roomTree";

const most = 600; // nodes that are shown with each of their devices

interface RoomMapProps {
  search: string;
  paint: Paint;
  chosen: string;
  onChoose: (name: string) => void;
}

/** The map: each device of a room of some hundred nodes, the use of each node of a larger one. */
export function RoomMap(props: RoomMapProps) {
  const by = props.paint === "use" ? "state" : props.paint;
  const map = useTopology(by, props.search);
  const small = map.data !== undefined && map.data.total <= most;
  const rows = useNodeRows(props.search, most, small);
  return (
    <Async query={map}>
      {(data) => (small ? <Async query={rows}>{(page) => <Places map={data} by={by} rows={page.rows ?? []} {...props} />}</Async> : <Places map={data} by={by} {...props} />)}
    </Async>
  );
}

interface PlacesProps extends RoomMapProps {
  map: Topology;
  by: string;
  rows?: readonly NodeRow[];
}

function Places({ map, by, rows, paint, chosen, onChoose, search }: PlacesProps) {
  const nodes = useMemo(() => rows?.map(fromRow) ?? fromTopology(map, by), [rows, map, by]);
  const tree = useMemo(() => roomTree(nodes), [nodes]);
  const sums = useMemo(() => sumPlaces(tree), [tree]);
  const palette = useMemo(() => new Palette(paint, nodes), [paint, nodes]);
  if (nodes.length === 0) return <Empty><p>{search === "" ? "No pool has nodes." : "No node fits."}</p></Empty>;
  return (
    <>
      <Legend palette={palette} />
      <PlaceBox place={tree} sums={sums} tile={rows ? largeTile : smallTile} palette={palette} chosen={chosen} onChoose={(node) => onChoose(node.name)} />
    </>
  );
}
