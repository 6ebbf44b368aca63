import type { paths } from "./schema";
import { Problem } from "./problem";

// The client of Coxswain's HTTP API. Its types are made from docs/reference/openapi.json, so a route
// or a field that the API does not have does not compile.

type Method = "get" | "post" | "put" | "delete";

/** The routes that have a method. */
export type Routes<M extends Method> = {
  [P in keyof paths]: paths[P] extends Record<M, { responses: unknown }> ? P : never;
}[keyof paths];

type Operation<P extends keyof paths, M extends Method> = paths[P] extends Record<M, infer O> ? O : never;

type Parameters<O, In extends "path" | "query"> = O extends { parameters: { [K in In]?: infer Q } } ? NonNullable<Q> : never;

/** What a route answers in JSON. */
export type Answer<P extends keyof paths, M extends Method> =
  Operation<P, M> extends { responses: infer R }
    ? { [S in keyof R]: R[S] extends { content: { "application/json": infer T } } ? T : never }[keyof R & (200 | 201)]
    : never;

type Body<O> = O extends { requestBody?: { content: { "application/json": infer B } } } ? B : never;

export interface Request<O> {
  path?: Parameters<O, "path">;
  query?: Parameters<O, "query">;
  body?: Body<O>;
  signal?: AbortSignal;
}

const version = "1.0";

/** The address of a route with its parameters. Lists are joined by commas; empty values are left out. */
export function address(route: string, path: Record<string, unknown> = {}, query: Record<string, unknown> = {}): string {
  const filled = route.replace(/\{(\w+)\}/g, (_, name: string) => encodeURIComponent(String(path[name] ?? "")));
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(query)) {
    if (Array.isArray(value)) {
      if (value.length > 0) search.set(name, value.join(","));
    } else if (value !== undefined && value !== null && value !== "" && value !== false) {
      search.set(name, String(value));
    }
  }
  const text = search.toString();
  return text === "" ? filled : `${filled}?${text}`;
}

/** Sends a request and throws a Problem for every answer that is not a success. */
export async function send(url: string, init: RequestInit = {}): Promise<Response> {
  let response: Response;
  try {
    response = await fetch(url, {
      ...init,
      credentials: "same-origin",
      headers: { "Cox-Api": version, ...(init.headers as Record<string, string>) },
    });
  } catch (cause) {
    if (cause instanceof DOMException && cause.name === "AbortError") throw cause;
    throw Problem.unreachable();
  }
  if (!response.ok) throw await Problem.of(response);
  return response;
}

async function json<T>(url: string, init: RequestInit): Promise<T> {
  const response = await send(url, init);
  const text = await response.text();
  return (text === "" ? undefined : JSON.parse(text)) as T;
}

/** GET of a route that answers in JSON. */
export function get<P extends Routes<"get">>(route: P, request: Request<Operation<P, "get">> = {}): Promise<Answer<P, "get">> {
  return json(address(route, request.path, request.query), { signal: request.signal ?? null });
}

/** POST of a route that answers in JSON. */
export function post<P extends Routes<"post">>(route: P, request: Request<Operation<P, "post">> = {}): Promise<Answer<P, "post">> {
  return json(address(route, request.path, request.query), {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(request.body ?? {}),
    signal: request.signal ?? null,
  });
}

/** A route that answers with text, for example a script. */
export async function text<P extends Routes<"get">>(route: P, request: Request<Operation<P, "get">> = {}): Promise<string> {
  const response = await send(address(route, request.path, request.query), { signal: request.signal ?? null });
  return response.text();
}

/** DELETE of a route. */
export async function remove<P extends Routes<"delete">>(route: P, request: Request<Operation<P, "delete">> = {}): Promise<void> {
  await send(address(route, request.path, request.query), { method: "DELETE", signal: request.signal ?? null });
}
