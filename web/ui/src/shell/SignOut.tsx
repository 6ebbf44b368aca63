import { useMutation } from "@tanstack/react-query";
import { remove } from "../api/client";

/** Ends the session of this browser. */
export function SignOut() {
  const signOut = useMutation({ mutationFn: () => remove("/v1/session"), onSettled: () => window.location.assign("/") });
  return <button type="button" className="link-button" disabled={signOut.isPending} onClick={() => signOut.mutate()}>Sign out</button>;
}
