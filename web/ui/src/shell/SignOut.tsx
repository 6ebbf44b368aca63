import { useMutation } from "@tanstack/react-query";
import { remove } from "../api/client";
import { Problem } from "../api/problem";

const home = () => window.location.assign("/");

/** Ends the session of this browser. */
export function SignOut() {
  const signOut = useMutation({
    mutationFn: () => remove("/v1/session"),
    onSuccess: home,
    onError: (error) => {
      if (Problem.from(error).isSignedOut) home();
    },
  });
  return (
    <>
      {signOut.error && <span role="alert">You are still signed in: {signOut.error.message}</span>}
      <button type="button" className="link-button" disabled={signOut.isPending} onClick={() => signOut.mutate()}>Sign out</button>
    </>
  );
}
