import type { Problem } from "../api/problem";
import { Command } from "../components/Command";
import { ProblemView } from "../components/Problem";
import "./SignedOut.css";

/** Says how to sign in. */
export function SignedOut({ problem }: { problem?: Problem }) {
  return (
    <main className="signed-out">
      <img src="/icon.svg" alt="" width="40" height="40" />
      <h1>Sign in</h1>
      <p>In a terminal, on a machine where you use cox:</p>
      <p><Command text="cox web" /></p>
      <p className="soft">It opens this page with a link that signs you in once. No password is needed.</p>
      {problem && <ProblemView error={problem} />}
    </main>
  );
}
