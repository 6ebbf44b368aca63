import { Problem } from "../api/problem";
import "./Problem.css";

/** An error in the API's words: what, why, and what to do. */
export function ProblemView({ error }: { error: unknown }) {
  const problem = Problem.from(error);
  return (
    <div className="problem" role="alert">
      <p className="problem-detail">
        <strong>{problem.title}</strong> {problem.message}
      </p>
      {problem.places.map((place, i) => (
        <div className="problem-place" key={i}>
          <p>
            {place.file}
            {place.line ? `:${place.line}` : ""}
            {place.col ? `:${place.col}` : ""} {place.message}
          </p>
          {place.text && (
            <pre>
              {place.text}
              {"\n"}
              {" ".repeat(Math.max((place.col ?? 1) - 1, 0)) + "^".repeat(Math.max(place.len ?? 1, 1))}
            </pre>
          )}
          {place.remedy && <p className="problem-remedy">{place.remedy}</p>}
        </div>
      ))}
      {problem.remedy && <p className="problem-remedy">{problem.remedy}</p>}
    </div>
  );
}
