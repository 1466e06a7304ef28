/* Starts the panel. */
import "uplot/dist/uPlot.min.css";
import "./style.css";
import {render} from "preact";
import {sessionHalf} from "./api/session";
import {App} from "./app";
import {pages} from "./pages";
import {routeRead} from "./route";

/* With a login, the file of the page comes beside the answer that says whose login it is, not after it. Where that fails, the
 * page asks again and says so. */
if (sessionHalf() !== null)
	pages
		.find(p => p.place === (routeRead(location.hash).parts[0] ?? ""))
		?.load()
		.catch(() => undefined);

render(<App />, document.getElementById("app")!);
