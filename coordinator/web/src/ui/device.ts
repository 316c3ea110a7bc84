// The choice of the device that computes the network, and what computes it now.

import type { DeviceChoice, DeviceStatus } from "../engine/device";
import { element } from "./elements";

/** The choice is kept in the browser. */
const KEY = "rookery-device";

export class DeviceField {
  private readonly select = element("device", HTMLSelectElement);
  private readonly line = element("computed", HTMLElement);

  constructor(choose: (choice: DeviceChoice) => void) {
    const kept = keptChoice();
    if ([...this.select.options].some(({ value }) => value === kept)) this.select.value = kept!;
    choose(this.choice);
    this.select.addEventListener("change", () => {
      keepChoice(this.choice);
      choose(this.choice);
    });
  }

  show({ device, text, isProblem, detail = "" }: DeviceStatus): void {
    this.line.textContent = text;
    this.line.title = detail;
    this.line.dataset["device"] = device;
    this.line.classList.toggle("problem", isProblem);
  }

  private get choice(): DeviceChoice {
    const { value } = this.select;
    return value === "processor" || value === "gpu" ? value : "auto";
  }
}

function keptChoice(): string | null {
  try {
    return localStorage.getItem(KEY);
  } catch {
    return null;
  }
}

function keepChoice(choice: DeviceChoice): void {
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Storage is forbidden: the choice lasts as long as the page.
  }
}
