import { Component, type ReactNode } from "react";
import { ProblemView } from "../components/Problem";

/** Shows a fault of a page in its place; the rest of the console goes on. */
export class Boundary extends Component<{ children: ReactNode }, { error?: unknown }> {
  override state: { error?: unknown } = {};

  static getDerivedStateFromError(error: unknown) {
    return { error };
  }

  override render() {
    if (this.state.error === undefined) return this.props.children;
    return (
      <>
        <ProblemView error={this.state.error} />
        <p><button type="button" className="link-button" onClick={() => window.location.reload()}>Load the page again</button></p>
      </>
    );
  }
}
