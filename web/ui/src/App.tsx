import { lazy, Suspense, type ComponentType } from "react";
import { Problem } from "./api/problem";
import { useServer } from "./api/queries";
import { Boundary } from "./shell/Boundary";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";
import { SignedOut } from "./shell/SignedOut";
import { addresses } from "./router/addresses";
import { usePath } from "./router/location";

// Each page is a file of its own, fetched when it is first opened.
const QueuePage = lazy(() => import("./pages/queue/QueuePage"));
const OverviewPage = lazy(() => import("./pages/overview/OverviewPage"));
const RoomPage = lazy(() => import("./pages/room/RoomPage"));
const ServicesPage = lazy(() => import("./pages/services/ServicesPage"));
const PoolsPage = lazy(() => import("./pages/pools/PoolsPage"));
const PlanPage = lazy(() => import("./pages/plan/PlanPage"));
const ReportsPage = lazy(() => import("./pages/reports/ReportsPage"));
const SubmitPage = lazy(() => import("./pages/submit/SubmitPage"));
const JobPage = lazy(() => import("./pages/job/JobPage"));

const pages: Record<string, ComponentType> = {
  [addresses.overview]: OverviewPage,
  [addresses.queue]: QueuePage,
  [addresses.room]: RoomPage,
  [addresses.services]: ServicesPage,
  [addresses.pools]: PoolsPage,
  [addresses.plan]: PlanPage,
  [addresses.reports]: ReportsPage,
  [addresses.submit]: SubmitPage,
};

export function App() {
  const server = useServer();
  const path = usePath();
  if (server.data && !server.data.you?.name) return <SignedOut />;
  if (server.error && Problem.from(server.error).isSignedOut) return <SignedOut problem={Problem.from(server.error)} />;
  return (
    <Shell>
      <Boundary key={path}>
        <Suspense fallback={null}>
          <PageAt path={path} />
        </Suspense>
      </Boundary>
    </Shell>
  );
}

function PageAt({ path }: { path: string }) {
  const job = /^\/jobs\/([^/]+)\/?$/.exec(path)?.[1];
  if (job !== undefined) return <JobPage name={decodeURIComponent(job)} key={job} />;
  const Page = pages[path];
  return Page ? <Page /> : <NotFound />;
}
