// The question that Forecast asks, from the address. What if asks the same to find the riskiest container.

import type { ForecastRequest } from "../../schema";

export const USUAL_INTERVAL = 10;
const USUAL_RATE = 2 ** 27;

/** `get` returns a parameter of the address, or nothing. */
export function forecastRequest(get: (name: string) => string): ForecastRequest {
  const [rate, interval] = [Number(get("rate")), Number(get("interval"))];
  return {
    growing: get("growing"),
    node: get("node"),
    kubelet: {
      evictionHard: get("hard"),
      evictionSoft: get("soft"),
      evictionSoftGracePeriod: get("grace"),
      systemReserved: "",
      kubeReserved: "",
    },
    intervalSeconds: interval > 0 ? interval : USUAL_INTERVAL,
    rateBytesPerSecond: rate >= 1 ? Math.round(rate) : USUAL_RATE,
    fastPath: get("fast") === "1",
  };
}

/** The question without any setting: about the container whose growth does most harm. */
export const ABOUT_RISKIEST: ForecastRequest = forecastRequest(() => "");
