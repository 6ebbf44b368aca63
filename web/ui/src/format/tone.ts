/** What a colour says: good, bad, to be looked at, on its way, or nothing. */
export type Tone = "good" | "bad" | "warn" | "info" | "plain";

const stateTones: Record<string, Tone> = {
  PENDING: "warn", RUNNING: "info", SUSPENDED: "warn", COMPLETED: "good", CANCELLED: "plain",
  FAILED: "bad", TIMEOUT: "bad", NODE_FAIL: "bad", BOOT_FAIL: "bad", DEADLINE: "bad", OUT_OF_MEMORY: "bad", LOST: "bad", PREEMPTED: "warn",
};

/** The tone of a job's state. */
export function jobTone(state: string): Tone {
  return stateTones[state] ?? "plain";
}

/** The tone of a node's state. */
export function nodeTone(state: string): Tone {
  return ({ up: "good", draining: "warn", down: "bad" } as Record<string, Tone>)[state] ?? "plain";
}

/** The tone of a pool's state. */
export function poolTone(state: string): Tone {
  return ({ up: "good", opening: "warn" } as Record<string, Tone>)[state] ?? "bad";
}

/** The tone of a service's state. */
export function serviceTone(state: string): Tone {
  const tones: Record<string, Tone> = {
    ready: "good", starting: "info", updating: "info", degraded: "warn", paused: "warn", halted: "bad", failed: "bad", asleep: "plain", stopping: "plain",
  };
  return tones[state] ?? "plain";
}
