import { lazy, Suspense, type ComponentType } from "react";
import { Problem } from "./api/problem";
import { useServer } from "./api/queries";
import { Boundary } from "./shell/Boundary";
import { NotFound } from "./shell/NotFound";
import { Shell } from "./shell/Shell";
import { SignedOut } from "./shell/SignedOut";
import { usePath } from "./router/location";

// Each page is a file of its own, fetched when it is first opened.
const QueuePage = lazy(() => import("./pages/queue/QueuePage"));
const JobPage = lazy(() => import("./pages/job/JobPage"));

const pages: Record<string, ComponentType> = {
  "/": QueuePage,
  "/queue": QueuePage,
};

export function App() {
  const server = useServer();
  const path = usePath();
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
