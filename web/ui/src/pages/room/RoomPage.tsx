import { useQueryClient } from "@tanstack/react-query";
import { useMemo } from "react";
import { useNodes } from "../../api/queries";
import { Async } from "../../components/Async";
import { Empty } from "../../components/Empty";
import { Page } from "../../components/Page";
import { Segments } from "../../components/Segments";
import { setQuery, useQuery } from "../../router/location";
import { useKeys } from "../../shell/keys";
import { useChanges } from "../../stream/useChanges";
import type { Node } from "../../api/types";
import { Legend } from "./Legend";
import { NodeList } from "./NodeList";
import { NodePanel } from "./NodePanel";
import { Palette, paintLabels, paints, type Paint } from "./paint";
import { PlaceBox } from "./PlaceBox";
import { roomTree, sumPlaces } from "./roomTree";
import { useHolders } from "./useHolders";
import "./RoomPage.css";

/** The machine room: nodes by topology, with their devices, and who uses them. */
export default function RoomPage() {
  const query = useQuery();
  const nodes = useNodes();
  const client = useQueryClient();
  useChanges(() => true, () => void client.invalidateQueries({ queryKey: ["nodes"] }), 3000);
  const paint = paints.find((each) => each === query.get("colour")) ?? "state";
  const shape = query.get("as") === "list" ? "list" : "map";
  const chosen = query.get("node") ?? "";
  const search = query.get("find") ?? "";
  useKeys({ Escape: () => setQuery({ node: "" }) });
  return (
    <Page
      title="Machine room"
      aside={
        <div className="room-tools">
          <Segments label="Show as" options={[["map", "Map"], ["list", "List"]]} value={shape} onChange={(as) => setQuery({ as: as === "map" ? "" : as })} />
          {shape === "map" && (
            <label className="room-paint">
              Colours <select value={paint} onChange={(event) => setQuery({ colour: event.target.value === "state" ? "" : event.target.value })}>
                {paints.map((each) => <option key={each} value={each}>{paintLabels[each]}</option>)}
              </select>
            </label>
          )}
          <input data-search type="search" value={search} placeholder="Find a node, state, job" aria-label="Find nodes by name, state, partition or job"
            onChange={(event) => setQuery({ find: event.target.value })} />
        </div>
      }
    >
      <div className={chosen === "" ? "room" : "room room-split"}>
        <div className="room-main">
          <Async query={nodes}>{({ nodes: all }) => <Room nodes={all ?? []} search={search} paint={paint} shape={shape} chosen={chosen} />}</Async>
        </div>
        {chosen !== "" && <NodePanel name={chosen} key={chosen} onClose={() => setQuery({ node: "" })} />}
      </div>
    </Page>
  );
}

interface RoomProps {
  nodes: readonly Node[];
  search: string;
  paint: Paint;
  shape: "map" | "list";
  chosen: string;
}

function Room({ nodes, search, paint, shape, chosen }: RoomProps) {
  const holders = useHolders(shape === "map" && (paint === "user" || paint === "account"));
  const found = useMemo(() => nodes.filter((node) => matches(node, search)), [nodes, search]);
  const tree = useMemo(() => roomTree(found), [found]);
  const sums = useMemo(() => sumPlaces(tree), [tree]);
  const palette = useMemo(() => filled(new Palette(paint, holders), found), [paint, holders, found]);
  const choose = (node: Node) => setQuery({ node: node.name });
  if (found.length === 0) return <Empty><p>{nodes.length === 0 ? "No pool has nodes." : "No node fits."}</p></Empty>;
  if (shape === "list") return <NodeList nodes={found} onOpen={choose} />;
  return (
    <>
      <Legend palette={palette} />
      <PlaceBox place={tree} sums={sums} palette={palette} chosen={chosen} onChoose={choose} />
    </>
  );
}

/** Counts what has which colour, so that the legend is known before anything is drawn. */
function filled(palette: Palette, nodes: readonly Node[]): Palette {
  for (const node of nodes) {
    if (palette.node(node) !== undefined) continue;
    for (const device of node.devices ?? []) if (device.jobs?.length) palette.device(device.jobs);
  }
  return palette;
}

function matches(node: Node, search: string): boolean {
  const wanted = search.trim().toLowerCase();
  if (wanted === "") return true;
  return [node.name, node.state, node.pool, node.owner ?? "", ...(node.path ?? []), ...(node.partitions ?? []), ...(node.features ?? [])].some((text) => text.toLowerCase().includes(wanted))
    || (node.jobs ?? []).includes(search.trim());
}
