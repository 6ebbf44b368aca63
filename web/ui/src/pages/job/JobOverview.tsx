import type { Job } from "../../api/types";
import { Card } from "../../components/Card";
import { JobFacts } from "./JobFacts";
import { RankTable } from "./RankTable";
import { Timeline } from "./timeline/Timeline";
import { WhyCard } from "./WhyCard";

export function JobOverview({ job }: { job: Job }) {
  return (
    <>
      {job.state === "PENDING" && <WhyCard job={job} />}
      <Card title="Timeline"><Timeline job={job} /></Card>
      <div className="cards">
        <Card title="Facts"><JobFacts job={job} /></Card>
        {(job.tasks?.length ?? 0) > 0 && <Card title="Ranks"><RankTable job={job} /></Card>}
      </div>
    </>
  );
}
