// The addresses of pages. A name that may have dots or slashes is a parameter.

export const addresses = {
  overview: "/",
  queue: "/queue",
  room: "/room",
  services: "/services",
  pools: "/pools",
  plan: "/plan",
  reports: "/reports",
  submit: "/submit",
  job: (name: string) => `/jobs/${encodeURIComponent(name)}`,
  log: (job: string, rank: string) => `/jobs/${encodeURIComponent(job)}?${new URLSearchParams(rank === "" ? { tab: "log" } : { tab: "log", rank })}`,
  queueOf: (filter: Record<string, string>) => `/queue?${new URLSearchParams(filter)}`,
  node: (name: string) => `/room?${new URLSearchParams({ node: name })}`,
  service: (name: string) => `/services?${new URLSearchParams({ service: name })}`,
  pool: (name: string) => `/pools?${new URLSearchParams({ pool: name })}`,
};
