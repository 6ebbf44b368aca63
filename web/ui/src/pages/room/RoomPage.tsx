import { useQueryClient } from "@tanstack/react-query";
import { Page } from "../../components/Page";
import { Segments } from "../../components/Segments";
import { setQuery, useQuery } from "../../router/location";
import { useKeys } from "../../shell/keys";
import { useChanges } from "../../stream/useChanges";
import { NodeList } from "./NodeList";
import { NodePanel } from "./NodePanel";
import { paintLabels, paints } from "./paint";
import { RoomMap } from "./RoomMap";
import "./RoomPage.css";

/** The machine room: nodes by topology, with their devices, and who uses them. */
export default function RoomPage() {
  const query = useQuery();
  const client = useQueryClient();
  useChanges([], () => void client.invalidateQueries({ queryKey: ["nodes"] }), { later: 4000 });
  const paint = paints.find((each) => each === query.get("colour")) ?? "state";
  const shape = query.get("as") === "list" ? "list" : "map";
  const chosen = query.get("node") ?? "";
  const search = query.get("find") ?? "";
  useKeys({ Escape: () => setQuery({ node: "" }) });
  const choose = (name: string) => setQuery({ node: name });
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
          <input data-search type="search" value={search} placeholder="Find a node" aria-label="Find nodes by name, address, feature or reason"
            onChange={(event) => setQuery({ find: event.target.value })} />
        </div>
      }
    >
      <div className={chosen === "" ? "room" : "room room-split"}>
        <div className="room-main">
          {shape === "list" ? <NodeList search={search} sort={query.get("sort") ?? "name"} onOpen={choose} /> : <RoomMap search={search} paint={paint} chosen={chosen} onChoose={choose} />}
        </div>
        {chosen !== "" && <NodePanel name={chosen} key={chosen} onClose={() => setQuery({ node: "" })} />}
      </div>
    </Page>
  );
}
