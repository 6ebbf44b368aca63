import type { components } from "./schema";

type Body = components["schemas"]["Error"];

/** An error of the API, in the API's own words (application/problem+json). */
export class Problem extends Error {
  readonly status: number;
  readonly title: string;
  readonly remedy: string;
  readonly places: NonNullable<Body["errors"]>;

  constructor(body: Body) {
    super(body.detail);
    this.name = "Problem";
    this.status = body.status;
    this.title = body.title;
    this.remedy = body.remedy ?? "";
    this.places = body.errors ?? [];
  }

  /** Reads the problem from an answer. An answer of something else than the API, for example of a proxy, is quoted. */
  static async of(response: Response): Promise<Problem> {
    const text = await response.text();
    try {
      const body = JSON.parse(text) as Partial<Body>;
      if (typeof body.detail === "string" && typeof body.title === "string") {
        return new Problem({ ...body, status: response.status, title: body.title, detail: body.detail });
      }
    } catch {
      // not JSON: quoted below
    }
    return new Problem({
      status: response.status,
      title: "unavailable",
      detail: `${response.status} ${response.statusText}: ${text.slice(0, 200)}`,
      remedy: "the answer is not of Coxswain; look at the proxy in front of it",
    });
  }

  static unreachable(): Problem {
    return new Problem({
      status: 0,
      title: "unavailable",
      detail: "the server does not answer",
      remedy: "this page tries again by itself; cox doctor says what the server lacks",
    });
  }

  /** Any error as a problem. */
  static from(error: unknown): Problem {
    if (error instanceof Problem) return error;
    return new Problem({ status: 0, title: "internal", detail: error instanceof Error ? error.message : String(error) });
  }

  /** Nobody is signed in: cox web makes a link that signs in. */
  get isSignedOut(): boolean {
    return this.status === 401;
  }
}
