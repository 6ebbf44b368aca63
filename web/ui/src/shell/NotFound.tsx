import { Page } from "../components/Page";
import { addresses } from "../router/addresses";
import { Link } from "../router/Link";

export function NotFound() {
  return (
    <Page title="No such page">
      <p>
        The console has no page at this address. The <Link to={addresses.queue}>queue</Link> has all jobs.
      </p>
    </Page>
  );
}
