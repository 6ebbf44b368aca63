import { count } from "../../format/number";
import { NodeTiles } from "./NodeTiles";
import type { Palette } from "./paint";
import type { Tile } from "./drawNodes";
import type { RoomNode } from "./roomNode";
import type { Place, Sums } from "./roomTree";

interface PlaceBoxProps {
  place: Place;
  sums: Map<string, Sums>;
  tile: Tile;
  palette: Palette;
  chosen: string;
  onChoose: (node: RoomNode) => void;
}

/** A place with its sums, and in it the places below it or its nodes. */
export function PlaceBox({ place, ...rest }: PlaceBoxProps) {
  const sum = rest.sums.get(place.key);
  return (
    <section className={place.places.length > 0 ? "place" : "place place-leaf"} aria-label={place.name || "nodes"}>
      {place.name !== "" && (
        <header>
          <b>{place.name}</b>
          {sum && (
            <span className="faint">
              {count(sum.nodes, "node")}
              {sum.devices > 0 && `, ${sum.used} of ${count(sum.devices, "device")} used`}
              {sum.down > 0 && <>, <b className="place-down">{sum.down} not up</b></>}
            </span>
          )}
        </header>
      )}
      {place.places.length > 0 && <div className="places">{place.places.map((each) => <PlaceBox key={each.key} place={each} {...rest} />)}</div>}
      {place.nodes.length > 0 && <NodeTiles place={place.name} nodes={place.nodes} tile={rest.tile} palette={rest.palette} chosen={rest.chosen} onChoose={rest.onChoose} />}
    </section>
  );
}
