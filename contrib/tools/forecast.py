"""forecast: the weather of the next days, from open-meteo.com.

The service asks for no key. Both of its hosts stand in the version's
`requires` and were granted to the server: no other can be reached from here.
The answers are a stranger's: nothing in them is taken for granted.
"""

from typing import Annotated

import mcpbox

PLACES = "https://geocoding-api.open-meteo.com/v1/search"
WEATHER = "https://api.open-meteo.com/v1/forecast"
DAILY = {"temperature_2m_min": "lowest_celsius",
         "temperature_2m_max": "highest_celsius",
         "precipitation_sum": "rain_mm"}
DAYS_MAX = 16


def _get(url, **params):
    """Returns the JSON of an answer; a failure is one sentence."""
    try:
        r = mcpbox.http.get(url, params=params, timeout=10, max_bytes=200_000)
        return r.raise_for_status().json()
    except mcpbox.http.StatusError as e:
        raise mcpbox.ToolError(f"the weather service answered with status "
                               f"{e.status_code}: try again later") from None
    except mcpbox.http.Error as e:
        raise mcpbox.ToolError(f"the weather service cannot be reached ({e}): "
                               "try again later") from None


def main(place: Annotated[str, "a town or a postal code"],
         days: Annotated[int, "1 to 16, today is the first"] = 3):
    """Forecasts temperature and rain of a place for the next days."""
    if not 1 <= days <= DAYS_MAX:
        raise mcpbox.ToolError(f"days must be from 1 to {DAYS_MAX}")
    found = _get(PLACES, name=place, count=1).get("results")
    if not found:
        raise mcpbox.ToolError(f"no place is called {place!r}: give a larger "
                               "town nearby, without its country")
    where = found[0]
    mcpbox.log({"place": where["name"], "country": where.get("country")})
    daily = _get(WEATHER, latitude=where["latitude"],
                 longitude=where["longitude"], daily=",".join(DAILY),
                 timezone="auto", forecast_days=days).get("daily", {})
    rows = zip(daily.get("time", ()), *(daily.get(k, ()) for k in DAILY))
    return {"place": where["name"], "country": where.get("country"),
            "days": [{"date": day, **dict(zip(DAILY.values(), values))}
                     for day, *values in rows]}
