import type { UseMutationResult } from "@tanstack/react-query";
import type { ReactNode } from "react";
import { Button } from "./Button";
import { Command } from "./Command";
import { Dialog } from "./Dialog";
import { ProblemView } from "./Problem";

interface ConfirmProps {
  title: string;
  question: ReactNode;
  command: string; // of cox, that does the same
  label: string;
  danger?: boolean;
  disabled?: boolean;
  mutation: Pick<UseMutationResult<unknown, Error, void>, "mutate" | "isPending" | "error">;
  onClose: () => void;
  children?: ReactNode; // fields
}

/** Asks before something is changed; the same command stands beside it. */
export function Confirm({ title, question, command, label, danger, disabled, mutation, onClose, children }: ConfirmProps) {
  return (
    <Dialog title={title} isOpen onClose={onClose}>
      <p>{question}</p>
      {children}
      <Command text={command} />
      {mutation.error && <ProblemView error={mutation.error} />}
      <div className="dialog-buttons">
        <Button onPress={onClose}>Close</Button>
        <Button look={danger ? "danger" : "primary"} isDisabled={mutation.isPending || disabled} onPress={() => mutation.mutate()} autoFocus={!children}>{label}</Button>
      </div>
    </Dialog>
  );
}
