import { Button as AriaButton, type ButtonProps as AriaButtonProps } from "react-aria-components";
import "./Button.css";

interface ButtonProps extends Omit<AriaButtonProps, "className"> {
  look?: "plain" | "primary" | "danger";
}

/** A button. */
export function Button({ look = "plain", ...rest }: ButtonProps) {
  return <AriaButton className={`button button-${look}`} {...rest} />;
}
