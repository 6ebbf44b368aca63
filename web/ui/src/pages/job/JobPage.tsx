import { useQueryClient } from "@tanstack/react-query";
import { useJob } from "../../api/queries";
import { Async } from "../../components/Async";
import { Page } from "../../components/Page";
import { addresses } from "../../router/addresses";
import { navigate } from "../../router/location";
import { useKeys } from "../../shell/keys";
import { useChanges } from "../../stream/useChanges";
import { JobActions } from "./actions/JobActions";
import { JobHeading } from "./JobHeading";
import { JobTabs } from "./JobTabs";

/** Everything about one job. */
export default function JobPage({ name }: { name: string }) {
  const job = useJob(name);
  const client = useQueryClient();
  useChanges([name], () => void client.invalidateQueries({ queryKey: ["job", name] }), { later: 5000 });
  useKeys({ Escape: () => navigate(addresses.queue) });
  return (
    <Page
      title={`Job ${name}`}
      heading={job.data ? <JobHeading job={job.data} /> : `Job ${name}`}
      aside={job.data && <JobActions job={job.data} />}
    >
      <Async query={job}>{(data) => <JobTabs job={data} />}</Async>
    </Page>
  );
}
