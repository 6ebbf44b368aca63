import type { components } from "../../api/schema";
import { Badge } from "../../components/Badge";
import { Card } from "../../components/Card";
import { Meter } from "../../components/Meter";
import { When } from "../../components/When";
import { number } from "../../format/number";
import { unix } from "../../format/time";
import type { Tone } from "../../format/tone";

const tones: Record<string, Tone> = { ok: "good", warn: "warn", over: "bad" };

/** Budgets, and what was spent of them. */
export function BudgetTable({ budgets, currency }: { budgets: components["schemas"]["ReportSpent"][]; currency: string }) {
  return (
    <Card title="Budgets">
      <div className="scroll-x" tabIndex={0} role="group" aria-label="Budgets">
        <table className="plain report-table">
          <thead><tr><th scope="col">Budget</th><th scope="col">Account</th><th scope="col">State</th><th scope="col" className="number">Spent</th><th scope="col" className="number">Of {currency}</th><th scope="col">Until</th></tr></thead>
          <tbody>
            {budgets.map((budget) => (
              <tr key={budget.name}>
                <td className="report-name">{budget.name}<Meter used={budget.spent} all={budget.amount} label={`${number(budget.spent_percent)} % are spent`} /></td>
                <td>{budget.account}</td>
                <td><Badge tone={tones[budget.state] ?? "plain"}>{budget.state}</Badge></td>
                <td className="number">{number(budget.spent)}, {number(budget.spent_percent)} %</td>
                <td className="number">{number(budget.amount)}</td>
                <td><When at={unix(budget.until)} /> {budget.period}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
    </Card>
  );
}
