import "./HandoverSteps.css";

const steps = ["asked", "drain", "fence", "prove", "admit", "check", "release"];

/** How far a hand-over is. */
export function HandoverSteps({ step }: { step: string }) {
  const done = steps.indexOf(step);
  return (
    <span className="handover-steps" title={steps.join(" → ")}>
      {steps.map((each, i) => <span key={each} className={i <= done ? "handover-done" : undefined} aria-hidden="true" />)}
      <span>{step}</span>
    </span>
  );
}
