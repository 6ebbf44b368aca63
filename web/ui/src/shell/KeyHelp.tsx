import { Dialog } from "../components/Dialog";
import "./KeyHelp.css";

const keys: [string, string][] = [
  ["j, k", "next and previous row"],
  ["Enter", "open the row"],
  ["/", "go to the filter or the search"],
  ["Esc", "leave a field, close a dialog, go back to the list"],
  ["1, 2, …", "open a page, in the order of the menu"],
  ["t", "light or dark"],
  ["?", "this help"],
];

export function KeyHelp({ isOpen, onClose }: { isOpen: boolean; onClose: () => void }) {
  return (
    <Dialog title="Keys" isOpen={isOpen} onClose={onClose}>
      <table className="keys">
        <tbody>
          {keys.map(([key, meaning]) => (
            <tr key={key}>
              <th scope="row"><kbd>{key}</kbd></th>
              <td>{meaning}</td>
            </tr>
          ))}
        </tbody>
      </table>
    </Dialog>
  );
}
